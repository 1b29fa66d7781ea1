"""A data set on the Hugging Face hub: only the configs that are asked for, at one recorded commit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError
from qilin_tasks.hub_reach import reach_hub
from qilin_tasks.sources.files import config_files, patterns


def _ways_out(repo_id: str) -> str:
    return (
        "Ways out: QILIN_DATA=<folder> with a copy in the published layout "
        f"(`hf download {repo_id} --repo-type dataset --local-dir <folder>` on a connected machine), "
        "QILIN_DATA=sample for the embedded sample, or HF_HUB_OFFLINE=1 with a cache that holds it."
    )


class HubSnapshot:
    """A hub repository, fetched config by config; the first answer fixes the commit for all later ones."""

    def __init__(self, repo_id: str, *, revision: str | None) -> None:
        self.repo_id = repo_id
        self.requested = revision
        self.commit: str | None = None

    def fetch(self, config: str) -> Path:
        """The snapshot folder after fetching `config`, whose files the cache may hold already; there may be none."""
        return self._snapshot(patterns(config))

    def folder(self, config: str) -> Path:
        """The snapshot folder, holding the files of `config`; raises DataError where the revision has none."""
        root = self.fetch(config)
        if not config_files(root, config):
            raise DataError(
                f"config {config!r} of {self.repo_id} (commit {self.commit}) has no parquet or CSV files in {root}: "
                f"this revision lacks the config, or the offline cache does. {_ways_out(self.repo_id)}"
            )
        return root

    def resolve(self) -> str:
        """The commit sha, asked from the hub (or the cache) where no config has been fetched yet."""
        if self.commit is None:
            self._snapshot(["README.md"])
        return str(self.commit)

    def _snapshot(self, allow_patterns: list[str]) -> Path:
        from huggingface_hub import constants, snapshot_download
        from huggingface_hub.errors import (
            GatedRepoError,
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )

        reach_hub(self.repo_id)
        revision = self.commit or self.requested
        endpoint = os.environ.get("HF_ENDPOINT") or constants.ENDPOINT
        name = f"{self.repo_id}{f'@{revision}' if revision else ''}"
        unreachable: tuple[type[BaseException], ...] = (
            LocalEntryNotFoundError,
            HfHubHTTPError,
            OSError,
            *_transport_errors(),
        )
        try:
            root = Path(
                snapshot_download(self.repo_id, repo_type="dataset", revision=revision, allow_patterns=allow_patterns)
            )
        except RevisionNotFoundError as error:
            raise DataError(
                f"{name}: {endpoint} has no such revision. Choose a branch, tag or commit of "
                f"{self.repo_id} (QILIN_REVISION, or unset it for the newest)."
            ) from error
        except GatedRepoError as error:
            raise DataError(
                f"{name}: {endpoint} asks for an accepted licence: `hf auth login`, and accept it on the page."
            ) from error
        except (RepositoryNotFoundError, HFValidationError) as error:
            raise DataError(
                f"{name}: {endpoint} has no such data set (or it is private). Check the id; {_ways_out(self.repo_id)}"
            ) from error
        except unreachable as error:
            raise DataError(
                f"{name}: can't be fetched from {endpoint}, and the cache ({constants.HF_HUB_CACHE}) lacks it "
                f"({type(error).__name__}: {(str(error).splitlines() or [''])[0]}). {_ways_out(self.repo_id)}"
            ) from error
        self.commit = root.name
        return root


def _transport_errors() -> tuple[type[BaseException], ...]:
    """The HTTP client's own errors; which client it is depends on the huggingface_hub release."""
    found: list[Any] = []
    for module_name, class_name in (("httpx2", "HTTPError"), ("httpx", "HTTPError"), ("requests", "RequestException")):
        try:
            module = __import__(module_name)
        except ImportError:
            continue
        found.append(getattr(module, class_name))
    return tuple(found)
