"""Dataclasses of `stint.dataclasses` behave as those of the standard library, and compile one method instead of six."""

import builtins
import copy
import dataclasses
import pickle
import sys
import weakref
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar
from typing import Any, ClassVar

import pytest

import stint.dataclasses
from stint.dataclasses import FrozenInstanceError, asdict, field, replace

Decorator = Callable[..., Any]
OURS: Decorator = stint.dataclasses.dataclass
THEIRS: Decorator = dataclasses.dataclass
BOTH = [pytest.param(OURS, id="stint"), pytest.param(THEIRS, id="standard library")]
"""Every behaviour is checked against both."""


@stint.dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    left: int
    right: Any = None


def make_point(dataclass: Decorator, **options: bool) -> Any:
    @dataclass(**options)
    class Point:
        kinds: ClassVar[int] = 2
        x: int
        y: int = 7
        tags: list[str] = field(default_factory=list)
        secret: str = field(default="s", repr=False)
        cache: dict[str, int] = field(default_factory=dict, compare=False)
        count: int = field(default=0, init=False)
        lines: list[int] = field(default_factory=list, init=False)
        later: int = field(init=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "later", self.x + self.y)

    return Point


@pytest.fixture(params=BOTH)
def dataclass(request: pytest.FixtureRequest) -> Decorator:
    decorator: Decorator = request.param
    return decorator


OPTIONS = [{}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True}]


@pytest.fixture(params=OPTIONS, ids=lambda options: "-".join(options) or "plain")
def point(request: pytest.FixtureRequest, dataclass: Decorator) -> Any:
    return make_point(dataclass, **request.param)


def test_arguments_and_defaults_become_attributes(point: Any) -> None:
    made = point(1, tags=["a"])

    assert (made.x, made.y, made.tags, made.secret, made.count, made.lines, made.later) == (1, 7, ["a"], "s", 0, [], 8)


def test_each_instance_has_defaults_of_its_own(point: Any) -> None:
    first, second = point(1), point(1)

    assert first.tags is not second.tags
    assert first.lines is not second.lines


@pytest.mark.parametrize(
    ("args", "kwargs", "reason"),
    [
        ((), {}, "__init__() missing 1 required positional argument: 'x'"),
        ((1,), {"z": 2}, "__init__() got an unexpected keyword argument 'z'"),
        ((1,), {"count": 2}, "__init__() got an unexpected keyword argument 'count'"),
        ((1, 2, [], "s", {}, 3), {}, "__init__() takes from 2 to 6 positional arguments but 7 were given"),
    ],
)
def test_wrong_arguments_are_refused_by_name(point: Any, args: Any, kwargs: Any, reason: str) -> None:
    with pytest.raises(TypeError) as caught:
        point(*args, **kwargs)
    assert str(caught.value) == f"make_point.<locals>.Point.{reason}"


def test_instances_are_equal_if_their_compared_fields_are(point: Any) -> None:
    assert point(1) == point(1, cache={"a": 1})
    assert point(1) != point(2)
    assert point(1) != (1, 7)


def test_instances_of_other_classes_are_not_equal(dataclass: Decorator) -> None:
    one, other = make_point(dataclass), make_point(dataclass)

    assert one(1) != other(1)


def test_a_class_without_eq_compares_identities(dataclass: Decorator) -> None:
    point = make_point(dataclass, slots=True, eq=False)

    one = point(1)
    assert one == one
    assert one != point(1)
    assert len({one, point(1)}) == 2


def test_only_frozen_instances_have_a_hash(dataclass: Decorator) -> None:
    @dataclass(frozen=True)
    class Frozen:
        x: int
        y: str = "y"

    assert hash(Frozen(1)) == hash(Frozen(1)) == hash((1, "y"))
    with pytest.raises(TypeError, match="unhashable"):
        hash(make_point(dataclass)(1))


def test_the_representation_omits_what_is_not_shown(point: Any) -> None:
    assert repr(point(1)) == "make_point.<locals>.Point(x=1, y=7, tags=[], cache={}, count=0, lines=[])"


def test_a_representation_that_contains_itself_ends(dataclass: Decorator) -> None:
    made = make_point(dataclass)(1)
    made.tags.append(made)

    assert "tags=[...]" in repr(made)


@pytest.mark.parametrize("slots", [False, True])
def test_frozen_fields_are_neither_assigned_nor_deleted(dataclass: Decorator, slots: bool) -> None:
    made = make_point(dataclass, frozen=True, slots=slots)(1)

    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        made.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del made.x
    assert made.x == 1


def test_slots_allow_no_other_attributes(dataclass: Decorator) -> None:
    made = make_point(dataclass, slots=True)(1)

    made.x = 2
    with pytest.raises(AttributeError):
        made.other = 3
    assert made.x == 2


def test_a_weakref_slot_allows_weak_references(dataclass: Decorator) -> None:
    made = make_point(dataclass, slots=True, weakref_slot=True)(1)

    assert weakref.ref(made)() is made


def test_copies_and_replacements_have_the_same_values(point: Any) -> None:
    made = point(1, tags=["a"])

    assert copy.copy(made) == copy.deepcopy(made) == made
    assert copy.deepcopy(made).tags is not made.tags
    assert replace(made, x=2) == point(2, tags=["a"])
    assert asdict(made)["tags"] == ["a"]


def test_a_pickle_has_the_same_values() -> None:
    assert pickle.loads(pickle.dumps(Pair(1, [2]))) == Pair(1, [2])


def test_patterns_match_positions() -> None:
    match Pair(1, 2):
        case Pair(left, right):
            assert (left, right) == (1, 2)


def test_a_subclass_adds_fields(dataclass: Decorator) -> None:
    base = make_point(dataclass, frozen=True, slots=True)
    base(0)

    @dataclass(frozen=True, slots=True)
    class Named(base):  # type: ignore[misc, valid-type]
        name: str = "n"

    assert Named(1, name="m").name == "m"
    assert Named(1) != base(1)
    assert base(1) == base(1)


def test_methods_of_the_class_stay(dataclass: Decorator) -> None:
    @dataclass(slots=True)
    class Own:
        x: int

        def __init__(self) -> None:
            self.x = 5

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 3

    assert (Own().x, repr(Own()), Own() == 0, hash(Own())) == (5, "own", True, 3)


def test_a_class_without_fields_has_one_value(dataclass: Decorator) -> None:
    @dataclass(frozen=True, slots=True)
    class Empty:
        pass

    assert Empty() == Empty()
    assert len({Empty(), Empty()}) == 1


def keyword_only() -> None:
    @OURS()
    class Late:
        _: KW_ONLY
        x: int


def passed_to_post_init() -> None:
    @OURS()
    class Late:
        x: InitVar[int]


def passed_to_post_init_by_name() -> None:
    @OURS()
    class Late:
        x: "InitVar[int]"


def left_out_of_the_hash() -> None:
    @OURS(frozen=True)
    class Late:
        x: int = field(hash=False)


@pytest.mark.parametrize(
    "define", [keyword_only, passed_to_post_init, passed_to_post_init_by_name, left_out_of_the_hash]
)
def test_unsupported_fields_are_refused_when_the_class_is_defined(define: Callable[[], None]) -> None:
    with pytest.raises(TypeError, match=r"Late\.x is InitVar, keyword-only or has hash, which is not supported"):
        define()


def test_methods_belong_to_the_module_of_the_class() -> None:
    assert Pair.__init__.__module__ == __name__


def test_a_definition_compiles_one_method(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    execute = builtins.exec

    def count(source: Any, *args: Any) -> None:
        compiled.append(source)
        execute(source, *args)

    monkeypatch.setattr(builtins, "exec", count)

    make_point(OURS, frozen=True, slots=True)
    assert len(compiled) == 1
    if sys.version_info < (3, 13):  # which compiles all methods at once
        make_point(THEIRS, frozen=True, slots=True)
        assert len(compiled) == 7
