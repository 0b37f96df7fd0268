"""A stateful agents API. Its modules, and those of other packages, come from the archives of `make build`, if any."""

import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

from stint.archive import install_archives


def _use_archives() -> None:
    for found in install_archives(os.path.dirname(os.path.dirname(__file__))):
        if found.texts:
            from stint.compiled_texts import use_compiled_texts  # noqa: PLC0415 - only a build has them

            use_compiled_texts(found)


def _search_no_plugins() -> None:
    """Keep pydantic from a search of all installed packages for its plugins, a twentieth of a cold start."""
    name = "pydantic.plugin._loader"
    loader = ModuleType(name, "No plugins of pydantic.")
    loader.__spec__ = ModuleSpec(name, None)
    vars(loader)["get_plugins"] = tuple
    sys.modules.setdefault(name, loader)


_use_archives()
_search_no_plugins()
