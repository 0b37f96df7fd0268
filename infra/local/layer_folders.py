"""Folders with the content of /opt for layers that are not built. They link to the sources."""

from pathlib import Path


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
