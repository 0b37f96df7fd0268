"""The output of `make build` in `.aws-sam/build`."""

import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from infra.scripts.auth_options import variables_with_auth
from infra.scripts.protocol_options import OPENAPI, Protocol, left_out, without_routes
from infra.scripts.published_versions import find_functions

RUNTIME = f"python{sys.version_info[0]}.{sys.version_info[1]}"
ARCHITECTURE = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
"""The target that this interpreter can run."""


PACKAGE = "layers/core/stint"


@dataclass(frozen=True)
class Build:
    """The output of `sam build` in a repository, and its target."""

    root: Path
    template: dict[str, Any]

    @property
    def folder(self) -> Path:
        return folder_of(self.root)

    @property
    def runtime(self) -> str:
        """Return the runtime. SAM writes it into the build settings of the core layer."""
        return str(self._target["BuildMethod"])

    @property
    def architecture(self) -> str:
        return str(self._target["BuildArchitecture"])

    @property
    def auth(self) -> str:
        """Return the option AUTH of the build."""
        variables = variables_with_auth(self.template)
        return str(variables[0]["STINT_AUTH"]) if variables else "authorizer"

    @property
    def left_out(self) -> tuple[Protocol, ...]:
        """Return the protocols without which it was built, by the option PROTOCOLS."""
        return left_out(self.template)

    @property
    def package(self) -> Path:
        return self.folder / "CoreLayer/python/stint"

    def __str__(self) -> str:
        return f"{self.runtime} on {self.architecture}"

    @property
    def _target(self) -> dict[str, Any]:
        target: dict[str, Any] = self.template["Resources"]["CoreLayer"]["Metadata"]
        return target

    def changed_source(self) -> Path | None:
        """Return a source that was changed after the build, relative to the repository, or None.

        Code is compared by content. Templates and the build files of the dependencies are compared by time.
        """
        for source, copy in self._copies():
            if not copy.is_file() or copy.read_bytes() != self._content(source):
                return source.relative_to(self.root)
        built_at = (self.folder / "template.yaml").stat().st_mtime
        recipes = ("template.yaml", "infra/aws/*.yaml", "layers/Makefile", "layers/*/requirements.txt")
        for recipe in (path for pattern in recipes for path in sorted(self.root.glob(pattern))):
            if recipe.stat().st_mtime > built_at:
                return recipe.relative_to(self.root)
        return None

    def _copies(self) -> Iterator[tuple[Path, Path]]:
        places = [(self.root / PACKAGE, self.package)]
        places += [(self.root / "layers/runtime/python", self.folder / "RuntimeLayer/python")]
        functions = find_functions(self.template).items()
        places += [(self.root / "functions" / folder, self.folder / name) for folder, name in functions]
        removed = tuple(self.root / PACKAGE / protocol.folder for protocol in self.left_out)
        for sources, built in places:
            for source in (*sources.rglob("*.py"), *sources.glob("http/static/*")):
                if not any(source.is_relative_to(folder) for folder in removed):
                    yield source, built / source.relative_to(sources)

    def _content(self, source: Path) -> bytes:
        """Return what the copy of a source has."""
        if self.left_out and source == self.root / PACKAGE / OPENAPI:
            return without_routes(source.read_text(), self.left_out).encode()
        return source.read_bytes()


def folder_of(root: Path) -> Path:
    return root / ".aws-sam" / "build"


def read_build(root: Path) -> Build | None:
    """Return the build of a repository, or None if there is none."""
    template = folder_of(root) / "template.yaml"
    return Build(root, yaml.safe_load(template.read_text())) if template.is_file() else None


def runnable_build(root: Path) -> Build | None:
    """Return the build of a repository if it is for this machine and has the current sources, or None."""
    build = read_build(root)
    if build is None or (build.runtime, build.architecture) != (RUNTIME, ARCHITECTURE):
        return None
    return build if build.changed_source() is None else None
