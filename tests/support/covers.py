"""Cover images that tests draw, for notes that name one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def notes_with_covers(count: int, *, without: int, suffix: str) -> list[dict[str, Any]]:
    """Rows of notes that name two pictures each, of which the first is the cover; the note `without` names none."""
    return [
        {
            "note_idx": i,
            "note_title": f"标题{i}",
            "note_content": "带 <image> 的内容" if i == 0 else f"内容{i}",
            "note_type": 1,
            "image_path": [] if i == without else [f"image/{i}.{suffix}", f"image/{i}_1.{suffix}"],
        }
        for i in range(count)
    ]
