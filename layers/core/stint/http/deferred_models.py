"""Import of FastAPI without the work that few requests need.

`stint.http` imports FastAPI once, within these context managers, before any other module can. Each of them changes what
the import finds, and restores it at the end:

  deferred_models       pydantic builds the models of OpenAPI when they are first used
  without_form_parser   no parser of multipart forms, since `stint.http.multipart` has one with limits
  deferred_modules      modules of the standard library that few requests need are imported when they are used
  without_telemetry     empty modules in place of opentelemetry; `NO_TELEMETRY` turns it off in each app

`without_pydantic_v1` does the same while a route is built.

A version of FastAPI that uses more of them at its import fails in tests/unit/http/test_deferred_models.py.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig

TELEMETRY = ("opentelemetry", "_logs", "context", "metrics", "propagate", "propagators", "propagators.textmap", "trace")
"""The package that FastAPI imports for its spans and metrics, and the modules of the package."""


@contextmanager
def deferred_models() -> Iterator[None]:
    """Let pydantic build the models that are defined within when they are first used (`defer_build`).

    FastAPI's 45 models of OpenAPI are a sixth of a cold start. Its calls of `model_rebuild`, which have no arguments,
    resolve forward references. The first use does that, too.
    """
    config, rebuild = BaseModel.model_config, BaseModel.__dict__["model_rebuild"]

    def rebuild_when_used(cls: type[BaseModel], /, *, _parent_namespace_depth: int = 2, **options: Any) -> bool | None:
        if not options:
            return None
        built: bool | None = rebuild.__func__(cls, _parent_namespace_depth=_parent_namespace_depth + 1, **options)
        return built

    BaseModel.model_config = config | ConfigDict(defer_build=True)
    BaseModel.model_rebuild = classmethod(rebuild_when_used)  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        BaseModel.model_config = config
        BaseModel.model_rebuild = rebuild  # type: ignore[method-assign]


@contextmanager
def without_form_parser() -> Iterator[None]:
    """Make `import python_multipart` an ImportError within.

    Starlette imports it for forms, which only `stint.http.multipart` parses.
    """
    absent = ("python_multipart", "multipart")
    before = {name: sys.modules.get(name) for name in absent}
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None makes the import fail
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


NO_TELEMETRY: "TelemetryConfig" = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""FastAPI's spans and metrics are off in each app, since their package is not loaded."""


class UnusedPart:
    """Any class or function of a package that is imported and not used. FastAPI inherits from one, and calls others."""

    def __class_getitem__(cls, _: object) -> type:
        return cls

    def __new__(cls, *_: object) -> None:  # type: ignore[misc]  # it returns None, which callers test
        return None


class UnusedModule(ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return sys.modules.get(f"{self.__name__}.{name}", UnusedPart)


class DeferredModule(ModuleType):
    """A module of the standard library that is imported when one of its names is used.

    A name that is imported from it while this object is in its place can only be called, and only afterwards.
    """

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            return lambda *arguments, **options: getattr(import_module(self.__name__), name)(*arguments, **options)
        return getattr(import_module(self.__name__), name)


@contextmanager
def deferred_modules() -> Iterator[None]:
    """Defer the import of modules that starlette and pydantic need only for some errors, and for forms.

    `http.client` loads the parsers of e-mails for the names of statuses, `importlib.metadata` those of zip and CSV
    files to check the version of a package, and `tempfile` what compresses files. No other thread may import them
    meanwhile. As attributes of their packages they stay in place until they are used.
    """
    deferred = [name for name in ("http.client", "importlib.metadata", "tempfile") if name not in sys.modules]
    for name in deferred:
        sys.modules[name] = DeferredModule(name)
        package, _, child = name.rpartition(".")
        if package:
            setattr(import_module(package), child, sys.modules[name])
    try:
        yield
    finally:
        for name in deferred:
            if isinstance(sys.modules.get(name), DeferredModule):
                del sys.modules[name]


@contextmanager
def without_telemetry() -> Iterator[None]:
    """Import nothing for `import opentelemetry` within, unless it is loaded.

    FastAPI imports its modules for spans and metrics, which `create_app` turns off, and they search the entry points of
    all installed packages. Together this is a tenth of a cold start.
    """
    package, *parts = TELEMETRY
    names = (package, *(f"{package}.{part}" for part in parts))
    if package in sys.modules:
        yield
        return
    sys.modules.update((name, UnusedModule(name)) for name in names)
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


@contextmanager
def without_pydantic_v1() -> Iterator[None]:
    """Make `from pydantic import v1` an ImportError within, unless it is loaded.

    FastAPI asks of every annotation whether it is a model of pydantic 1, and loads 23 modules for it. It expects the
    error of a pydantic that has no such package.
    """
    if "pydantic.v1" in sys.modules:
        yield
        return
    sys.modules["pydantic.v1"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["pydantic.v1"]
