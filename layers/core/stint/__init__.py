"""A stateful agents API. Its modules, and those of other packages, come from the archives of `make build`, if any."""

import os
import sys
from types import ModuleType

from stint.archive import install_archives

for archive in install_archives(os.path.dirname(os.path.dirname(__file__))):
    if archive.texts:
        from stint.compiled_texts import use_compiled_texts

        use_compiled_texts(archive)

# pydantic searches all installed packages for its plugins. There are none here, and the search, with its imports, is
# a twentieth of a cold start.
without_search = ModuleType("pydantic.plugin._loader", "No plugins of pydantic.")
vars(without_search)["get_plugins"] = tuple
sys.modules.setdefault(without_search.__name__, without_search)
