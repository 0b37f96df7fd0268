"""Archives of bytecode in the layers of a build (`layers/core/stint/archive.py` reads them, and has their format)."""

import marshal
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

from stint.archive import HEAD_BYTES, SUFFIX

PYC_HEAD_BYTES = 16
MARSHAL_VERSION = 2
"""The last one that does not depend on how often an object is referred to: the same index has the same bytes."""

# These are loaded before anything can be imported from an archive.
RUNTIME = "RuntimeLayer"
IMPORTER = {"stint", "stint.archive"}


def archive_layers(build: Path, tag: str) -> int:
    """Move the bytecode of each layer into its archive, and return the number of modules. `tag` is in its names."""
    layers = sorted(path.parent for path in build.glob("*/python") if path.parent.name != RUNTIME)
    return sum(archive_modules(layer / "python", layer.name, tag) for layer in layers)


def archive_modules(folder: Path, name: str, tag: str) -> int:
    """Move the bytecode of a folder's modules into an archive in it, and return their number.

    What is not in a package that Python can import stays where it is.
    """
    index: dict[str, tuple[int, int, bool]] = {}
    codes, magic = bytearray(), b""
    for source, module in list_modules(folder):
        if module in IMPORTER:
            continue
        bytecode = bytecode_of(source, tag)
        content = bytecode.read_bytes()
        bytecode.unlink()
        magic = content[:4]
        code = content[PYC_HEAD_BYTES:]
        index[module] = len(codes), len(code), source.name == "__init__.py"
        codes += code
    head = marshal.dumps(index, MARSHAL_VERSION)
    size = HEAD_BYTES + len(head) + len(codes)
    numbers = size.to_bytes(4, "little") + len(head).to_bytes(8, "little")
    (folder / f"{name}{SUFFIX}").write_bytes(magic + numbers + head + codes)
    return len(index)


def list_modules(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the sources in a folder of packages, with the names of their modules, in the order of their paths."""
    for source in sorted(folder.rglob("*.py")):
        parts = source.relative_to(folder).with_suffix("").parts
        parents = [folder.joinpath(*parts[:depth]) for depth in range(1, len(parts))]
        if all((parent / "__init__.py").is_file() for parent in parents):
            yield source, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def bytecode_of(source: Path, tag: str) -> Path:
    return Path(cache_from_source(str(source))).with_name(f"{source.stem}.{tag}.pyc")
