import json

import pytest

from stint.domain.errors import InvalidRequest
from stint.domain.paging import MAX_BYTES, Page, Window
from stint.domain.schema import Schema
from stint.http.json_responses import MAX_LIMIT, MAX_START, listing, window_of


class Entry(Schema):
    text: str


def test_a_list_is_cut_where_its_answer_would_not_fit() -> None:
    entries = [Entry(text='"' * (MAX_BYTES // 10)) for _ in range(4)]

    answer = json.loads(bytes(listing(Page(entries, has_more=False), "/x").body))

    assert (len(answer["data"]), answer["has_more"], answer["url"]) == (2, True, "/x")


def test_one_entry_is_shown_however_large() -> None:
    entries = [Entry(text="x" * (MAX_BYTES + 1)), Entry(text="")]

    answer = json.loads(bytes(listing(Page(entries, has_more=False), "/x").body))

    assert (len(answer["data"]), answer["has_more"]) == (1, True)


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ((None, None), Window(0, None)),
        ((0, -1), Window(0, None)),
        ((3, 0), Window(3, 0)),
        ((10**22, 10**22), Window(MAX_START, MAX_LIMIT)),
    ],
)
def test_windows(given: tuple[int | None, int | None], window: Window) -> None:
    assert window_of(*given) == window


@pytest.mark.parametrize(("given", "name"), [((-1, None), "start_index"), ((None, -2), "limit")])
def test_negative_windows_are_refused_by_name(given: tuple[int | None, int | None], name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        window_of(*given)

    assert refused.value.param == name
