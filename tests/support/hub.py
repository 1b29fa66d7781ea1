"""Points the hub client libraries of this process (and of its children) at a local stand-in server."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

OFFLINE_FLAGS = {
    "huggingface_hub.constants": "HF_HUB_OFFLINE",
    "datasets.config": "HF_HUB_OFFLINE",
}
ENDPOINTS = {
    "huggingface_hub.constants": {
        "ENDPOINT": "{endpoint}",
        "HUGGINGFACE_CO_URL_TEMPLATE": "{endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
    },
    "datasets.config": {
        "HF_ENDPOINT": "{endpoint}",
        "HUB_DATASETS_URL": "{endpoint}/datasets/{{repo_id}}/resolve/{{revision}}/{{path}}",
    },
}


def go_online(monkeypatch: pytest.MonkeyPatch, *, endpoint: str, cache: Path) -> None:
    """Lift the offline mode until the test ends: the hub is `endpoint`, its cache the folder `cache`.

    The libraries read these variables once, at import; so both the variables and the constants are set.
    """
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setenv("HF_HOME", str(cache))
    monkeypatch.setenv("HF_HUB_CACHE", str(cache / "hub"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(cache / "datasets"))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    for module, flag in OFFLINE_FLAGS.items():
        monkeypatch.setattr(importlib.import_module(module), flag, False)
    for module, values in ENDPOINTS.items():
        for name, value in values.items():
            loaded = importlib.import_module(module)
            if hasattr(loaded, name):
                monkeypatch.setattr(loaded, name, value.format(endpoint=endpoint))
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(importlib.import_module("datasets.config"), "HF_DATASETS_CACHE", cache / "datasets")
