"""Imports from archives: the bytecode of a layer's modules in one file, which `make build` writes.

A cold start imports 400 modules of layers. From plain files, each costs ten calls of the file system: Python looks for
it in one folder after the other, and reads two files. From an archive, it is a look-up and one read.

    what                                   comes from
    a module of the archive                the archive
    another module, an extension module    Python's own finder, which is asked next
    data files, sources in tracebacks      the deployed files, whose paths the modules have

An archive is a part of the layer whose modules it contains, so it cannot be older than they are. Bytecode does not
depend on the processor. An archive for another version of Python, or an incomplete one, is logged and not used.
`make run` and the tests have no archives.

    bytes        content
    16           the magic number of the bytecode, in 4 bytes; the lengths of the file and of the index, in 4 and 8
    index        for each module: where its code begins after the index, its length, whether it is a package (marshal);
                 the first two for each text and mode that `compile` gets while modules are imported, and for each
                 regular expression and its flags (compiled_texts.py)
    the rest     the code of the modules and texts (marshal)
"""

import _imp
import json
import marshal
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import Any

SUFFIX = ".bytecode"
HEAD_BYTES = 16
CACHE = f"{sys.implementation.cache_tag}.pyc"

ModuleIndex = dict[str, tuple[int, int, bool]]
TextIndex = dict[tuple[str, str | int], tuple[int, int]]


class UnusableArchive(Exception):
    """The archive is incomplete, or of another version of Python."""


class Archive:
    """An open archive. It stays open, because functions import modules as long as they run."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDONLY)
        head = os.pread(self._file, HEAD_BYTES, 0)
        if head[:4] != MAGIC_NUMBER:
            raise UnusableArchive("it is of another version of Python")
        index_bytes = int.from_bytes(head[8:], "little")
        if os.fstat(self._file).st_size != int.from_bytes(head[4:8], "little"):
            raise UnusableArchive("it is incomplete")
        index: tuple[ModuleIndex, TextIndex] = self._load(index_bytes, HEAD_BYTES)
        self.modules, self.texts = index
        self._begin = HEAD_BYTES + index_bytes

    def code_of_module(self, name: str) -> CodeType:
        begin, length, _ = self.modules[name]
        code: CodeType = self._load(length, self._begin + begin)
        return code

    def code_of_text(self, text: str, mode: str) -> CodeType:
        """Return what `compile` would. Raises KeyError for another text."""
        begin, length = self.texts[text, mode]
        code: CodeType = self._load(length, self._begin + begin)
        return code

    def parts_of_pattern(self, text: str, flags: int) -> tuple[Any, ...]:
        """Return the version of the engine, and what it makes a regular expression from. Raises KeyError."""
        begin, length = self.texts[text, flags]
        parts: tuple[Any, ...] = self._load(length, self._begin + begin)
        return parts

    def _load(self, length: int, begin: int) -> Any:
        return marshal.loads(os.pread(self._file, length, begin))  # noqa: S302 - our build wrote it


class ArchiveLoader(SourceFileLoader):
    """The loader of a module. All but the code comes from its file."""

    def __init__(self, name: str, path: str, archive: Archive) -> None:
        super().__init__(name, path)
        self._archive = archive

    def get_code(self, fullname: str) -> CodeType:
        if sys.flags.verbose:  # as Python's own loaders do
            sys.stderr.write(f"# code object from {self._archive.path!r}\n")
        code = self._archive.code_of_module(fullname)
        if code.co_filename != self.path:  # the layer is not in /opt
            _imp._fix_co_filename(code, self.path)  # type: ignore[attr-defined]
        return code


class ArchiveFinder:
    """The finder of the modules of an archive, whose files are in a folder."""

    def __init__(self, folder: str, archive: Archive) -> None:
        self._folder = folder
        self._archive = archive

    def find_spec(self, name: str, path: Sequence[str] | None = None, _: object = None) -> ModuleSpec | None:
        """Return the specification that Python's finder would return for this folder, or None.

        A package that was imported from another place has its modules there. `path` are its places.
        """
        if name not in self._archive.modules:
            return None
        parent = name.rpartition(".")[0].replace(".", "/")
        if path is not None and (f"{self._folder}/{parent}" if parent else self._folder) not in path:
            return None
        place, is_package = f"{self._folder}/{name.replace('.', '/')}", self._archive.modules[name][2]
        folder, stem = (place, "__init__") if is_package else os.path.split(place)
        file = f"{folder}/{stem}.py"
        spec = ModuleSpec(name, ArchiveLoader(name, file, self._archive), origin=file, is_package=is_package)
        spec.has_location = True
        spec.cached = f"{folder}/__pycache__/{stem}.{CACHE}"
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(place)
        return spec


def install_archives(folder: str) -> list[Archive]:
    """Import from the archives in a folder, if there are any, and return them."""
    archives = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith(SUFFIX):
            continue
        try:
            archive = Archive(f"{folder}/{name}")
        except (UnusableArchive, OSError, ValueError, EOFError, TypeError) as error:  # marshal raises the last three
            # Powertools, which formats log lines, is not loaded.
            line = {"level": "WARNING", "message": f"{name} is not used: {error}", "logger": __name__}
            sys.stdout.write(json.dumps(line) + "\n")
        else:
            sys.meta_path.insert(0, ArchiveFinder(folder, archive))
            archives.append(archive)
    return archives
