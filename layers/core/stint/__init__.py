"""A stateful agents API. Its modules, and those of other packages, come from the archives of `make build`, if any."""

import os

from stint.archive import install_archives

install_archives(os.path.dirname(os.path.dirname(__file__)))
