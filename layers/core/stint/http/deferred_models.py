"""Import of FastAPI without the work that few requests need."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict


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
