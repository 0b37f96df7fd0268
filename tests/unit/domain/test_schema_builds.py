"""Which classes are built when one is first used, and how often."""

import threading
from collections import Counter

import pytest
from pydantic import BaseModel, ValidationError
from pydantic._internal._generate_schema import GenerateSchema
from pydantic_core import CoreSchema

from stint.domain.schema import Schema


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the builds of classes by their names."""
    counted: Counter[str] = Counter()
    generate = GenerateSchema._model_schema

    def count(self: GenerateSchema, cls: type[BaseModel]) -> CoreSchema:
        if not cls.__pydantic_complete__:
            counted[cls.__name__] += 1
        return generate(self, cls)

    monkeypatch.setattr(GenerateSchema, "_model_schema", count)
    return counted


def test_an_object_within_several_others_is_built_once(builds: Counter[str]) -> None:
    class Inner(Schema):
        values: list[int] = []

    class One(Schema):
        inner: Inner

    class Other(Schema):
        inners: list[Inner]

    One.model_validate({"inner": {"values": [1]}})
    Other.model_validate({"inners": [{"values": [2]}]})

    assert builds["Inner"] == 1


class Node(Schema):
    children: "list[Node | Leaf]" = []


class Leaf(Schema):
    parent: "Node | None" = None
    values: list[int] = []


def test_objects_that_contain_each_other_are_built() -> None:
    found = Node.model_validate({"children": [{"children": [{"parent": {"children": []}, "values": [1]}]}]})
    assert found.to_json() == Node.model_validate_json(found.to_json()).to_json()
    assert Leaf.model_validate({"parent": {"children": []}, "values": ["1"]}).values == [1]


def test_lists_of_objects_within_others_stop_at_their_first_invalid_entry() -> None:
    class Holder(Schema):
        nodes: list[Node | Leaf]
        leaf: Leaf

    wrong = {"values": ["a", "b", "c"]}
    with pytest.raises(ValidationError) as error:
        Holder.model_validate({"nodes": [], "leaf": wrong})
    assert error.value.error_count() == 1
    with pytest.raises(ValidationError) as error:
        Leaf.model_validate(wrong)
    assert error.value.error_count() == 1


def test_threads_that_use_a_class_first_at_once_all_get_it() -> None:
    class Inner(Schema):
        values: list[int] = []

    kinds = [type(f"Outer{at}", (Schema,), {"__annotations__": {"inner": Inner}}) for at in range(20)]
    failures: list[BaseException] = []
    starting = threading.Barrier(len(kinds))

    def use(kind: type[Schema]) -> None:
        starting.wait()
        try:
            kind.model_validate({"inner": {"values": [1]}})
            Inner.model_validate({"values": [1]})
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test fails
            failures.append(error)

    threads = [threading.Thread(target=use, args=(kind,)) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
