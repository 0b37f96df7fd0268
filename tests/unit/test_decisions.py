"""The form of docs/decisions.md."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "decisions.md").read_text()
ENTRIES = re.findall(r"^## (\d{4}-\d\d-\d\d) · (.+)$", TEXT, re.MULTILINE)


def test_headings_have_a_date_a_title_of_their_own_and_a_blank_line_before_them() -> None:
    titles = [title for _, title in ENTRIES]

    assert len(titles) == len(set(titles)) == len(re.findall(r"^## ", TEXT, re.MULTILINE))
    assert len(re.findall(r"\n\n## ", TEXT)) == len(titles)


def test_an_entry_is_superseded_by_one_that_is_there_and_not_older() -> None:
    references = re.findall(
        r'^## (\S+) · (.+)\nSuperseded (?:in part )?by "(.+)" \((\S+)\)\.\n(?!\n)', TEXT, re.MULTILINE
    )

    assert len(references) == len(re.findall("^Superseded", TEXT, re.MULTILINE)) > 0
    for date, title, later, later_date in references:
        assert (later_date, later) in ENTRIES, title
        assert later_date >= date
        assert later != title
