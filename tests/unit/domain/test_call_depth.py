"""The depth of a call: how it is read, and who carries it."""

import pytest

from stint.caller import acting_as, find_call_depth, raise_call_depth
from stint.domain.call_depth import read_depth
from stint.domain.errors import InvalidRequest
from stint.domain.principals import ANONYMOUS, Principal
from stint.services.runs.senders import acting_for, name_sender


@pytest.mark.parametrize("value", ["0", "5", "007", "999", 0, 6])
def test_a_depth_is_a_whole_number(value: object) -> None:
    assert read_depth(value, "it") == int(str(value))


@pytest.mark.parametrize(
    "value", ["", "-1", "+1", "1.0", "1,2", " 1", "٣", "1000", "x" * 5000, -1, 1000, 1.0, True, None, [1], {}]
)
def test_another_depth_is_refused_by_the_name_of_its_place(value: object) -> None:
    with pytest.raises(InvalidRequest, match="Stint-Call-Depth must be") as refused:
        read_depth(value, "Stint-Call-Depth")

    assert (refused.value.code, refused.value.param) == ("invalid_call_depth", "Stint-Call-Depth")


def test_a_number_too_long_to_print_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        read_depth(10**5000, "it")


def test_a_depth_is_only_raised() -> None:
    with acting_as(ANONYMOUS):
        for depth, expected in ((3, 3), (1, 3), (4, 4)):
            raise_call_depth(depth)
            assert find_call_depth() == expected
    assert find_call_depth() == 0


def test_code_without_a_caller_has_no_depth() -> None:
    raise_call_depth(3)

    assert find_call_depth() == 0


def test_the_stored_caller_has_the_depth() -> None:
    with acting_as(ANONYMOUS):
        raise_call_depth(2)
        deep = name_sender()
        with acting_for(Principal.from_context(ANONYMOUS.to_context()).to_context(), None):
            assert (find_call_depth(), name_sender() == deep) == (0, False)


def test_a_deeper_caller_is_the_same_caller() -> None:
    deep = Principal.from_context(ANONYMOUS.to_context() | {"call_depth": "2"})

    assert (deep, deep.call_depth, "call_depth" in ANONYMOUS.to_context()) == (ANONYMOUS, 2, False)
