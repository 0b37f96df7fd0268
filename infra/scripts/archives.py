"""Archives of bytecode in the layers of a build (`layers/core/stint/archive.py` reads them, and has their format)."""

import marshal
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

from infra.scripts.record_texts import MARSHAL_VERSION, Texts

from stint.archive import HEAD_BYTES, SUFFIX, ModuleIndex, TextIndex

PYC_HEAD_BYTES = 16
PACKAGE = "CoreLayer"

# These are loaded before anything can be imported from an archive.
RUNTIME = "RuntimeLayer"
IMPORTER = {"stint", "stint.archive"}


def archive_layers(build: Path, tag: str, texts: Texts) -> int:
    """Move the bytecode of each layer into its archive, and return the number of modules. `tag` is in its names.

    The layer of the package gets the texts.
    """
    layers = sorted(path.parent for path in build.glob("*/python") if path.parent.name != RUNTIME)
    return sum(
        archive_modules(layer / "python", layer.name, tag, texts if layer.name == PACKAGE else {}) for layer in layers
    )


def archive_modules(folder: Path, name: str, tag: str, texts: Texts) -> int:
    """Move the bytecode of a folder's modules, and texts, into an archive in it. Return the number of modules.

    What is not in a package that Python can import stays where it is.
    """
    magic, codes = b"", bytearray()
    modules: ModuleIndex = {}
    for source, module in list_modules(folder):
        if module in IMPORTER:
            continue
        bytecode = Path(cache_from_source(str(source))).with_name(f"{source.stem}.{tag}.pyc")
        magic, code = (content := bytecode.read_bytes())[:4], content[PYC_HEAD_BYTES:]
        modules[module] = len(codes), len(code), source.name == "__init__.py"
        codes += code
        bytecode.unlink()
    found: TextIndex = {}
    for key, code in texts.items():
        found[key] = len(codes), len(code)
        codes += code
    index = marshal.dumps((modules, found), MARSHAL_VERSION)
    size = HEAD_BYTES + len(index) + len(codes)
    numbers = size.to_bytes(4, "little") + len(index).to_bytes(8, "little")
    (folder / f"{name}{SUFFIX}").write_bytes(magic + numbers + index + codes)
    return len(modules)


def list_modules(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the sources in a folder of packages, with the names of their modules, in the order of their paths."""
    for source in sorted(folder.rglob("*.py")):
        parts = source.relative_to(folder).with_suffix("").parts
        parents = [folder.joinpath(*parts[:depth]) for depth in range(1, len(parts))]
        # Python prefers an extension module beside a source.
        is_extension = any(source.parent.glob(f"{source.stem}.*.so"))
        if all((parent / "__init__.py").is_file() for parent in parents) and not is_extension:
            yield source, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
