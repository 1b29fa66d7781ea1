"""Cover images from a local folder: which can be used, and opening them when a model asks for them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

from qilin_tasks.errors import DataError, DependencyError, SettingError

logger = logging.getLogger(__name__)

VARIABLE = "QILIN_IMAGES"
PLACEHOLDER = "<image>"
"""What the harness's multimodal models replace by an image, in order."""


def shows_images() -> bool:
    """Whether QILIN_IMAGES is set at all; a folder that is not there is an error of its own."""
    return bool(os.environ.get(VARIABLE))


def images_root() -> Path:
    """The folder that `image_path` of the notes is relative to. Raises SettingError where QILIN_IMAGES names none."""
    value = os.environ.get(VARIABLE, "")
    root = Path(value).expanduser()
    if not value or not root.is_dir():
        raise SettingError(
            f"{VARIABLE} {value!r}: set it to the folder of Qilin's images, in which image_path "
            "(for example image/part_114/1145271/5122187.jpg) lies"
        )
    return root.resolve()


def usable_images(paths: Iterable[str], *, root: Path) -> set[str]:
    """Those of the relative paths that hold an image that can be decoded; the others are counted in the log.

    Raises DataError where none can, which is a wrong folder rather than missing images.
    """
    found = survey_covers(paths, root=root)
    lost = [*found.missing, *found.broken]
    wanted = len(found.usable) + len(lost)
    if lost:
        logger.warning(
            "of %d cover images in %s, %d are missing and %d are broken (first: %s); those notes are shown without one",
            wanted,
            root,
            len(found.missing),
            len(found.broken),
            lost[0],
        )
    if lost and not found.usable:
        raise DataError(
            f"{VARIABLE} {str(root)!r}: none of {wanted} cover images can be opened (first: {min(lost)}); "
            "set it to the folder in which these paths lie"
        )
    return set(found.usable)


@dataclass(frozen=True)
class CoverSurvey:
    """Distinct paths, each list ascending: those that hold an image, that are no file, that can't be decoded."""

    usable: tuple[str, ...]
    missing: tuple[str, ...]
    broken: tuple[str, ...]


def survey_covers(paths: Iterable[str], *, root: Path) -> CoverSurvey:
    """Opens every one of the relative paths; a blank one is none."""
    from tqdm import tqdm

    wanted = sorted({path for path in paths if path})
    missing, broken, usable = [], [], []
    for path in tqdm(wanted, desc="checking cover images", disable=len(wanted) < 500):
        place = _inside(root, path)
        if place is None or not place.is_file():
            missing.append(path)
        elif _decodes(place):
            usable.append(path)
        else:
            broken.append(path)
    return CoverSurvey(tuple(usable), tuple(missing), tuple(broken))


class StackedCover(Sequence[Any]):
    """One square picture, made when it is asked for: the candidate's cover, below those of the clicked notes if any.

    As the official VLM's input is made (RED-Search/Qilin, baselines/src/dataset_factory.py and utils.py): each cover is
    resized to a square, the clicked notes' are stacked from the top and squeezed into one square, and so is that with
    the candidate's below it. A blank path, and a user without clicks, give a white square.
    """

    def __init__(self, cover: str, clicked: Sequence[str] | None, *, side: int) -> None:
        self.cover, self.clicked = cover, None if clicked is None else tuple(clicked)
        self._side = side

    def __len__(self) -> int:
        return 1

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(1)[index]]
        if index not in (0, -1):
            raise IndexError(index)
        root = images_root()
        cover = _square(root, self.cover, self._side)
        return cover if self.clicked is None else _stack([_clicked(root, self.clicked, self._side), cover], self._side)

    def __repr__(self) -> str:
        return f"StackedCover({self.cover!r}, clicked={self.clicked})"


@lru_cache(maxsize=4)
def _clicked(root: Path, paths: tuple[str, ...], side: int) -> Any:
    """The covers of a user's clicks in one square, the same for all candidates of a request."""
    return _stack([_square(root, path, side) for path in paths], side) if paths else _square(root, "", side)


def _square(root: Path, path: str, side: int) -> Any:
    if not path:
        return _pillow()[0].new("RGB", (side, side), "white")
    return open_image(root / path, max_side=None).resize((side, side))


def _stack(images: Sequence[Any], side: int) -> Any:
    """Squares from the top, squeezed into one."""
    sheet = _pillow()[0].new("RGB", (side, side * len(images)))
    for number, image in enumerate(images):
        sheet.paste(image, (0, side * number))
    return sheet.resize((side, side))


class Covers(Sequence[Any]):
    """Images that are opened when they are asked for: thousands of requests hold paths, not pixels."""

    def __init__(self, paths: Sequence[str], *, max_side: int) -> None:
        self.paths = list(paths)
        self._max_side = max_side

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Covers: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Covers(self.paths[index], max_side=self._max_side)
        return open_image(images_root() / self.paths[index], max_side=self._max_side)

    def __repr__(self) -> str:
        return f"Covers({self.paths})"


def open_image(path: Path, *, max_side: int | None) -> Any:
    """The image as RGB, scaled down to `max_side` pixels on its longer side (None: as it is).

    DataError where it can't be opened.
    """
    image_module, failures = _pillow()
    try:
        with image_module.open(path) as image:
            if max_side is not None:
                image.draft("RGB", (max_side, max_side))
            rgb = image.convert("RGB")
    except failures as error:
        raise DataError(
            f"{path}: can't be opened any more ({error}); it was in order when the task was built"
        ) from error
    if max_side is not None:
        rgb.thumbnail((max_side, max_side))
    return rgb


def _decodes(path: Path) -> bool:
    image_module, failures = _pillow()
    try:
        with image_module.open(path) as image:
            image.draft("RGB", (32, 32))
            image.convert("RGB")
    except failures:
        return False
    return True


def _inside(root: Path, path: str) -> Path | None:
    """The file of a relative path, None where the path leads out of the folder."""
    place = (root / path).resolve()
    return place if place.is_relative_to(root) else None


def _pillow() -> tuple[Any, tuple[type[Exception], ...]]:
    try:
        from PIL import Image
    except ImportError as error:
        raise DependencyError("cover images need Pillow: pip install 'qilin-tasks[vision]'") from error
    # What Pillow raises for damaged files, by its decoders (SyntaxError: PNG).
    return Image, (OSError, ValueError, SyntaxError, Image.DecompressionBombError)
