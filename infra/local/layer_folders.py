"""Folders with the content of /opt for layers that are not built: links to their sources."""

from pathlib import Path


def layer_folders(layers: tuple[Path, ...], links: Path) -> tuple[Path, ...]:
    """The content folders of these layers, in order.

    A layer that holds `python/` is one as it stands, and so is every built layer. A source layer with a
    `requirements.txt` has its packages in the environment that runs the functions. Any other is a folder of
    packages that SAM would put below `python/`: here a link in `links` does.
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
