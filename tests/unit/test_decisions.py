"""The form of docs/decisions.md."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "decisions.md").read_text()
TOPICS = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
ENTRIES = re.findall(r"^### (\d{4}-\d\d-\d\d) · (.+)$", TEXT, re.MULTILINE)


def test_headings_have_a_date_a_title_of_their_own_and_a_blank_line_before_them() -> None:
    titles = [title for _, title in ENTRIES]

    assert len(titles) == len(set(titles)) == len(re.findall(r"^### ", TEXT, re.MULTILINE))
    assert len(re.findall(r"\n\n##+ ", TEXT)) == len(titles) + len(TOPICS)


def test_each_entry_is_below_a_topic_of_the_table_of_contents() -> None:
    contents = TEXT.split("\n## ")[0]

    assert re.findall(r"^- \[(.+)\]\(#", contents, re.MULTILINE) == TOPICS
    assert re.findall(r"\(#(.+)\)$", contents, re.MULTILINE) == [anchor_of(topic) for topic in TOPICS]
    assert "### " not in contents


def anchor_of(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
