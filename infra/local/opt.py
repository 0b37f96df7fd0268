"""/opt and /var/runtime of a function, as folders of symbolic links, and the folders of layers that are not built."""

import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path

# The modules in the managed runtime's folder that a plain handler needs.
_RUNTIME_MODULES = ("awslambdaric", "runtime_client", "snapshot_restore_py", "simplejson")


def merge_layers(layers: Sequence[Path], target: Path) -> None:
    """Merge the content of layers into `target`. Files of later layers override, as in Lambda."""
    target.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Path]] = {}
    for layer in layers:
        for entry in sorted(layer.iterdir()):
            found.setdefault(entry.name, []).append(entry)
    for name, entries in found.items():
        if len(entries) > 1 and all(entry.is_dir() for entry in entries):
            merge_layers(entries, target / name)
        else:
            (target / name).symlink_to(entries[-1].resolve())


def link_runtime(target: Path, modules: Iterable[str] = _RUNTIME_MODULES) -> None:
    """Link AWS's runtime client of this environment into `target` (LAMBDA_RUNTIME_DIR)."""
    target.mkdir(parents=True, exist_ok=True)
    for module in modules:
        spec = importlib.util.find_spec(module)
        if spec and spec.origin:
            path = Path(spec.origin)
            path = path.parent if path.name == "__init__.py" else path
            (target / path.name).symlink_to(path)


def layer_folders(layers: tuple[Path, ...], links: Path) -> tuple[Path, ...]:
    """Return the content folders of these layers, in order.

    A layer that has a folder `python/` is used directly; every built layer has one. A source layer with a
    `requirements.txt` is left out, because its packages are installed in the environment that runs the functions. Any
    other layer is a folder of packages that SAM would copy into `python/`; a link in `links` replaces the copy.
    """
    folders = []
    for layer in layers:
        if (layer / "python").is_dir():
            folders.append(layer)
        elif not (layer / "requirements.txt").is_file():
            folders.append(link_below_python(layer, links / layer.name))
    return tuple(folders)


def link_below_python(layer: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "python"
    link.unlink(missing_ok=True)
    link.symlink_to(layer, target_is_directory=True)
    return folder
