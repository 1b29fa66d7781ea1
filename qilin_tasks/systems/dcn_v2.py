"""DCN-V2 (Wang et al. 2021) over the release's features, with the model of torch-rechub.

Field libraries compared on PyPI, 2026-12-03: torch-rechub 0.9.0 (MIT, 158 kB, three releases in 2026; needs numpy,
pandas, scikit-learn, torch, tqdm), deepctr-torch 0.3.0 (Apache-2.0, 84 kB, one release in 2026, none from 2022 to then;
torch, tqdm, scikit-learn), fuxictr 2.3.10 (Apache-2.0, 100 kB, one release in 2026; also ray, polars, pyarrow, h5py).

Differs from the paper: no BERT vectors of query and note; size, optimizer (AdamW in place of LAMB), sampling (every
shown note counts, in place of one clicked and 20 others a request) and stopping are this project's.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError, DependencyError, SettingError
from qilin_tasks.files import write_whole
from qilin_tasks.sources.qilin import QilinSource
from qilin_tasks.systems.dcn_features import FeatureEncoder, Features, Impressions, read_impressions

FILES = ("model.pt", "features.json")


@dataclass(frozen=True, kw_only=True)
class DcnSettings:
    """`dimension` of an embedding, `cross_layers` of the cross network beside a deep one of `hidden` units."""

    dimension: int
    cross_layers: int
    hidden: tuple[int, ...]
    learning_rate: float
    weight_decay: float
    batch_size: int
    epochs: int
    seed: int

    def __post_init__(self) -> None:
        for name in ("dimension", "cross_layers", "batch_size", "epochs"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} {getattr(self, name)}: choose a number from 1")
        if not self.hidden or min(self.hidden) < 1:
            raise SettingError(f"hidden {self.hidden}: give one or more layers of 1 or more units")
        if not self.learning_rate > 0:
            raise SettingError(f"learning_rate {self.learning_rate}: choose a number above 0")


@dataclass(frozen=True)
class DcnV2:
    """A trained model with what its features mean."""

    settings: DcnSettings
    encoder: FeatureEncoder
    network: Any

    def predict(self, source: QilinSource, shown: Impressions) -> NDArray[np.float32]:
        """The probability of a click for each impression, float32 (entries,)."""
        return self.probabilities(self.encoder.encode(source, shown))

    def probabilities(self, features: Features) -> NDArray[np.float32]:
        """As `predict`, from encoded features."""
        import torch

        self.network.eval()
        parts = []
        with torch.inference_mode():
            for start in range(0, len(features["numbers"]), 4096):
                parts.append(self.network(_batch(features, np.arange(start, start + 4096))).numpy())
        return np.concatenate(parts)

    def save(self, folder: Path) -> None:
        """Writes FILES: the weights, and what the features mean."""
        import torch

        weights, features = (folder / name for name in FILES)
        write_whole(weights, lambda file: torch.save(self.network.state_dict(), file))
        write_whole(
            features,
            json.dumps({"settings": asdict(self.settings), "encoder": asdict(self.encoder)}, ensure_ascii=False),
        )


def train_dcn(
    source: QilinSource,
    config: str,
    settings: DcnSettings,
    *,
    rows: int | None = None,
    checkpoint: Path | None = None,
    progress: bool = False,
) -> DcnV2:
    """Trains on what was shown in the first `rows` rows of `search_train` or `recommendation_train`, on the CPU.

    The same seed gives the same model on one machine. After every pass the state goes into `checkpoint`, from which the
    same call goes on to what it would have been. DataError for missing features, and where all or nothing was
    clicked; DependencyError without torch-rechub.
    """
    import torch
    from tqdm import tqdm

    _library()
    shown = read_impressions(source, config, limit=rows)
    if not 0 < shown.clicked.mean() < 1:
        raise DataError(f"{source.name}: {config} has {int(shown.clicked.sum())} clicks among {len(shown)} shown notes")
    encoder = FeatureEncoder.fit(source, shown)
    features = encoder.encode(source, shown)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        network = _network(settings, encoder)
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        clicked = torch.from_numpy(shown.clicked)
        network.train()
        first = _go_on(checkpoint, network, optimizer)
        for epoch in tqdm(range(first, settings.epochs), desc="training", unit=" passes", disable=not progress):
            # An order of its own for each pass, whether training was stopped before it or not.
            order = np.random.default_rng([settings.seed, epoch]).permutation(len(shown))
            for chosen in torch.split(torch.from_numpy(order), settings.batch_size):
                # A batch norm needs two.
                if len(chosen) < 2:
                    continue
                guessed = network(_batch(features, chosen.numpy()))
                loss = torch.nn.functional.binary_cross_entropy(guessed, clicked[chosen])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            if checkpoint is not None:
                state = {"weights": network.state_dict(), "optimizer": optimizer.state_dict(), "passes": epoch + 1}
                write_whole(checkpoint, lambda file, state=state: torch.save(state, file))  # type: ignore[misc]
    return DcnV2(settings, encoder, network)


def _go_on(checkpoint: Path | None, network: Any, optimizer: Any) -> int:
    """How many passes are done; what they left is put into network and optimizer."""
    import torch

    if checkpoint is None or not checkpoint.is_file():
        return 0
    state = torch.load(checkpoint, weights_only=True)
    network.load_state_dict(state["weights"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["passes"])


def load_dcn(folder: Path) -> DcnV2:
    """A model of `DcnV2.save`. DataError for a folder that holds none."""
    import torch

    try:
        weights, features = (folder / name for name in FILES)
        stored = json.loads(features.read_text(encoding="utf-8"))
        given = stored["settings"]
        settings = DcnSettings(**{**given, "hidden": tuple(given["hidden"])})
        encoder = FeatureEncoder(**stored["encoder"])
        network = _network(settings, encoder)
        network.load_state_dict(torch.load(weights, weights_only=True))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise DataError(f"{folder}: not a DCN-V2 of qilin-tasks ({error})") from error
    return DcnV2(settings, encoder, network)


def _network(settings: DcnSettings, encoder: FeatureEncoder) -> Any:
    features, models, initializers = _library()
    normal = initializers.RandomNormal(0, 0.05)
    columns = [
        features.SparseFeature(name, vocab_size=len(known) + 1, embed_dim=settings.dimension, initializer=normal)
        for name, known in encoder.kinds.items()
    ]
    columns.append(
        features.SequenceFeature(
            "history",
            vocab_size=len(encoder.kinds["note_idx"]) + 1,
            embed_dim=settings.dimension,
            pooling="mean",
            shared_with="note_idx",
            padding_idx=0,
        )
    )
    columns.append(features.DenseFeature("numbers", embed_dim=len(encoder.mean)))
    return models.DCNv2(
        columns,
        n_cross_layers=settings.cross_layers,
        mlp_params={"dims": list(settings.hidden), "dropout": 0.0, "activation": "relu"},
        model_structure="parallel",
        use_low_rank_mixture=False,
    )


def _library() -> tuple[Any, Any, Any]:
    try:
        from torch_rechub.basic import features, initializers
        from torch_rechub.models import ranking
    except ImportError as error:
        raise DependencyError("DCN-V2 needs torch-rechub: pip install 'qilin-tasks[dcn]'") from error
    return features, ranking, initializers


def _batch(features: Features, chosen: NDArray[np.int64]) -> dict[str, Any]:
    import torch

    return {name: torch.from_numpy(values[chosen[chosen < len(values)]]) for name, values in features.items()}
