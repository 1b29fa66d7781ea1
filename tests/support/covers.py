"""Cover images that tests draw, for notes that name one."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw

from qilin_tasks.sources.sample import sources
from qilin_tasks.sources.sample_tables import tables


def draw(path: Path, *, size: tuple[int, int] = (300, 400), shade: int = 100) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", size, (shade % 256, 100, 50))
    ImageDraw.Draw(image).text((10, 10), path.stem)
    image.save(path)


def draw_sample_covers(root: Path) -> Path:
    """Every image that the embedded sample names, under `root`, which is returned as a value for QILIN_IMAGES."""
    notes = tables(sources())["notes"]
    paths = {path for paths in notes.column("image_path").to_pylist() for path in paths or ()}
    for i, path in enumerate(sorted(paths)):
        draw(root / path, size=(60, 80), shade=20 * i)
    return root
