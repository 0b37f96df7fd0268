"""Import of FastAPI, and of Powertools' logger, without the work that few requests need.

`stint.http` imports them once, within these context managers, before any other module can. Each of them changes what
the import finds, and restores it at the end:

  deferred_modules      modules that few requests need, such as the models of OpenAPI, are imported when they are used
  without_form_parser   no parser of multipart forms, since `stint.http.multipart` has one with limits
  without_telemetry     empty modules in place of opentelemetry; `NO_TELEMETRY` turns it off in each app

`without_pydantic_v1` does the same while a route is built.

A version of FastAPI that uses more of them at its import fails in tests/unit/http/test_deferred_imports.py.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig

TELEMETRY = ("opentelemetry", "_logs", "context", "metrics", "propagate", "propagators", "propagators.textmap", "trace")
"""The package that FastAPI imports for its spans and metrics, and the modules of the package."""


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


class DeferredName:
    """A name of a deferred module. It can be called and has attributes, once the import of FastAPI has ended."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if isinstance(sys.modules.get(self._module), DeferredModule):
            return self  # as a default of FastAPI's OAuth2, which raises a ValidationError when it is used
        return self._find()(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # `typing` asks any object for them
            raise AttributeError(name)
        return getattr(self._find(), name)

    def __or__(self, _: object) -> Self:  # in annotations, which nobody reads
        return self

    __ror__ = __or__

    def _find(self) -> Any:
        return getattr(import_module(self._module), self._name)


class DeferredModule(ModuleType):
    """A module that is imported when one of its names is used."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            return DeferredName(self.__name__, name)
        return getattr(import_module(self.__name__), name)


DEFERRED = (
    *("email.message", "email.utils", "http.client", "http.cookies", "importlib.metadata", "mimetypes", "tempfile"),
    *("fastapi.openapi.docs", "fastapi.openapi.models", "fastapi.openapi.utils"),
    "aws_lambda_powertools.utilities.jmespath_utils",
)
"""Modules that these libraries need only for documents, cookies, forms, files and some errors. The last one finds ids
in events, which nothing here asks for."""


@contextmanager
def deferred_modules() -> Iterator[None]:
    """Defer the import of the modules in `DEFERRED`.

    `http.client` loads the parsers of e-mails for the names of statuses, `importlib.metadata` those of zip and CSV
    files to check the version of a package, and `tempfile` what compresses files. The 36 models of OpenAPI are a
    thirtieth of a cold start. No other thread may import them meanwhile. As attributes of the standard library's
    packages they stay in place until they are used.
    """
    deferred = [name for name in DEFERRED if name not in sys.modules]
    for name in deferred:
        sys.modules[name] = DeferredModule(name)
        package, _, child = name.rpartition(".")
        if package and package in sys.stdlib_module_names:
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
