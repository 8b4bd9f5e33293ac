"""Volume: a directory whose large files are striped over devices."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphlane import _command
from graphlane._core import Error
from graphlane._graph import Graph
from graphlane._open import open_graph


class Volume:
    """A volume by its directory, mounted or not.

        volume = graphlane.Volume.create("graphs", ["/mnt/d0", "/mnt/d1"])
        volume.import_("/tmp/livejournal")
        volume.open("livejournal").neighbors(7)"""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """A volume that is there. graphlane.Error: none is."""
        self.path = Path(path)
        if "devices" not in self.info():
            raise Error(f"{self.path}: is no volume")

    def __repr__(self) -> str:
        return f"<graphlane.Volume {str(self.path)!r}>"

    @classmethod
    def create(cls, path: str | os.PathLike[str], devices: Iterable[str | os.PathLike[str]], *,
               stripe_depth: int | str | None = None, stripe: Iterable[str] = (),
               min_size: int | str | None = None) -> "Volume":
        """Makes a volume over at least two devices, which are directories, best on a disk each. `stripe`: files of these names only."""
        if isinstance(devices, (str, os.PathLike)):
            raise TypeError("devices: a list of directories, and not one")
        words: list[str | os.PathLike[str]] = ["create", path]
        for device in devices:
            words += ["--device", device]
        if stripe_depth is not None:
            words += ["--stripe-depth", _command.size(stripe_depth)]
        for pattern in stripe:
            words += ["--stripe", pattern]
        if min_size is not None:
            words += ["--min-size", _command.size(min_size)]
        _command.run(*words)
        return cls(path)

    def import_(self, source: str | os.PathLike[str], name: str = "", *, overwrite: bool = False, progress: bool | None = None) -> Path:
        """Copies a file or a directory into the volume, by its own name or another, and returns its path there."""
        target = self.path / (name or Path(source).name)
        _command.run("import", *(["--overwrite"] if overwrite else []), source, target, progress=progress)
        return target

    def export(self, name: str, target: str | os.PathLike[str], *, overwrite: bool = False, progress: bool | None = None) -> None:
        """Copies a file or a directory out of the volume, as plain files."""
        _command.run("export", *(["--overwrite"] if overwrite else []), self.path / name, target, progress=progress)

    def open(self, name: str, **options: Any) -> Graph:
        """A graph in the volume, as graphlane.open."""
        return open_graph(self.path / name, **options)

    def check(self, *, scrub: bool = False) -> str:
        """Compares stubs with what is on the devices (`scrub`: reads every byte). Returns the report; graphlane.Error:
        something is wrong."""
        return _command.run("check", *(["--scrub"] if scrub else []), self.path)

    def info(self) -> dict[str, Any]:
        """Devices, stripe depth and identity."""
        return _command.run_json("info", self.path)

    def stat(self) -> dict[str, Any]:
        """The counters of a mounted or served volume, by device."""
        return _command.run_json("stat", self.path)
