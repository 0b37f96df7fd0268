import json

from stint.domain.paging import MAX_BYTES, Page
from stint.domain.schema import Schema
from stint.http.json_responses import listing


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


def test_the_next_page_starts_after_the_last_entry_that_is_shown() -> None:
    entries = [Entry(text=f"{number}" * (MAX_BYTES // 3)) for number in range(4)]

    def shown(page: Page[Entry]) -> object:
        answer = json.loads(bytes(listing(page, "/x", position_of=lambda entry: entry.text[0]).body))
        return answer.get("next_after")

    assert shown(Page(entries, has_more=False, position="3")) == "1"
    assert shown(Page(entries[:1], has_more=True, position="7")) == "7"
    assert shown(Page(entries[:1], has_more=False, position="0")) is None
