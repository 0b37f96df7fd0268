"""The form of docs/decisions.md."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "decisions.md").read_text()
CONTENTS, *TOPICS = re.split(r"^## ", TEXT, flags=re.MULTILINE)
TITLES = re.findall(r"^### (.+)$", TEXT, re.MULTILINE)


def test_headings_have_a_title_of_their_own_and_a_blank_line_before_and_after_them() -> None:
    assert len(TITLES) == len(set(TITLES)) > len(TOPICS)
    assert len(re.findall(r"(?<=\n\n)##+ .+(?=\n\n)", TEXT)) == len(TITLES) + len(TOPICS)


def test_each_entry_is_below_a_topic_of_the_table_of_contents() -> None:
    topics = [topic.splitlines()[0] for topic in TOPICS]

    assert re.findall(r"^- \[(.+)\]\(#(.+)\)$", CONTENTS, re.MULTILINE) == [(each, anchor_of(each)) for each in topics]
    assert "### " not in CONTENTS
    assert all("\n### " in topic for topic in TOPICS)


def anchor_of(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
