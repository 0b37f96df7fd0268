"""The standard library's dataclasses, without the methods that it compiles for each class.

Those take about a millisecond for a frozen class, and a cold start defines over a hundred. Here only `__init__` is
compiled; the other methods are the same functions for all classes.

https://docs.python.org/3/library/dataclasses.html

docs/decisions.md, entry 73, has the reasons.
"""

import dataclasses
import reprlib
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, InitVar, asdict, field, fields, replace
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["FrozenInstanceError", "asdict", "dataclass", "field", "fields", "replace"]


def _dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True, weakref_slot: bool = False
) -> Callable[[type], type]:
    """Return a decorator like `dataclasses.dataclass`, of which it supports these parameters.

    All subclasses of a frozen class are frozen.

    Raises TypeError for a class with fields that are `InitVar`, keyword-only or have `hash`, which are not supported.
    """

    def decorate(cls: type) -> type:
        prepare = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, weakref_slot=weakref_slot)
        # Without a docstring, the standard library would make the signature of the class.
        cls.__doc__ = cls.__doc__ or cls.__name__  # the default, a signature, is slow to inspect
        made: type = prepare(cls)
        for each in vars(made)["__dataclass_fields__"].values():
            _refuse_unsupported(made, each)
        for name, method in _methods(made, frozen, slots, eq).items():
            if vars(made).get(name) is None:  # a method of the class stays
                setattr(made, name, method)
        return made

    return decorate


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _refuse_unsupported(cls: type, each: Field[Any]) -> None:
    is_init_var = each.type.startswith("InitVar") if isinstance(each.type, str) else isinstance(each.type, InitVar)
    if is_init_var or each.kw_only is True or each.hash is not None:
        raise TypeError(f"{cls.__qualname__}.{each.name} is InitVar, keyword-only or has hash, which is not supported.")


def _methods(cls: type, frozen: bool, slots: bool, eq: bool) -> dict[str, object]:
    methods: dict[str, object] = {"__init__": _compile_init(cls, frozen), "__repr__": _repr}
    if eq:
        # As in the standard library: a class with equality that can be changed has no hash.
        methods |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
    if frozen and slots:  # copies and pickles would assign
        methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
    return methods


def _compile_init(cls: type, frozen: bool) -> Callable[..., None]:
    """Return `__init__`. What it refers to has names that no field has."""
    scope: dict[str, Any] = {"__name__": cls.__module__, "__MISSING": MISSING, "__assign": object.__setattr__}
    parameters, lines = ["self"], []
    for each in fields(cls):
        default, value = _default_and_value(each, scope)
        if each.init:
            parameters.append(each.name + default)
        if value:
            lines.append(f" __assign(self, {each.name!r}, {value})" if frozen else f" self.{each.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec("\n".join([f"def __init__({', '.join(parameters)}):", *lines, " pass"]), scope)  # noqa: S102
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"  # for messages about missing arguments
    return init


def _default_and_value(each: Field[Any], scope: dict[str, Any]) -> tuple[str, str]:
    """Return the default of a field's parameter and the expression of its value, and add to the scope what they use."""
    name = each.name
    if each.default_factory is not MISSING:
        scope[f"__make_{name}"] = each.default_factory
        return "=__MISSING", f"__make_{name}() if {name} is __MISSING else {name}" if each.init else f"__make_{name}()"
    if each.default is not MISSING:
        scope[f"__default_{name}"] = each.default
        return f"=__default_{name}", name if each.init else f"__default_{name}"
    return "", name if each.init else ""


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> bool:
    return _values(self) == _values(other) if self.__class__ is other.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _values(self: Any) -> object:
    return _values_getter(self.__class__)(self)


@cache
def _values_getter(cls: Any) -> Callable[[object], object]:
    names = [each.name for each in fields(cls) if each.compare]
    return attrgetter(*names) if names else lambda _: ()


def _refuse_assignment(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
