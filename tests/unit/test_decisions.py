"""The form of docs/decisions.md, and the modules that refer to its entries."""

import re
from pathlib import Path

from infra.scripts.contents import anchor_of

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "decisions.md").read_text()
CONTENTS, *TOPICS = re.split(r"^## ", TEXT, flags=re.MULTILINE)
TITLES = re.findall(r"^### (.+)$", TEXT, re.MULTILINE)
ENTRIES = re.findall(r"^### (\d+)\. .+\n\n(.*)\n\n((?:(?!##).*\n)*)", TEXT, re.MULTILINE)
"""The number, the status and the text of each entry."""

STATUS = re.compile(r"(Proposed|Accepted|Superseded by \d+), \d{4}-(0[1-9]|1[0-2])\.")
MOST_WORDS = 90
FILE = re.compile(r"`([\w./-]+/[\w-]+\.(?:py|yaml))`")
REFERENCE = re.compile(r"docs/decisions\.md, entry (\d+)")


def test_headings_have_a_title_of_their_own_and_a_blank_line_before_and_after_them() -> None:
    assert len(TITLES) == len(set(TITLES)) > len(TOPICS)
    assert len(re.findall(r"(?<=\n\n)##+ .+(?=\n\n)", TEXT)) == len(TITLES) + len(TOPICS)


def test_each_entry_is_below_a_topic_of_the_table_of_contents() -> None:
    topics = [topic.splitlines()[0] for topic in TOPICS]

    assert re.findall(r"^- \[(.+)\]\(#(.+)\)$", CONTENTS, re.MULTILINE) == [(each, anchor_of(each)) for each in topics]
    assert "### " not in CONTENTS
    assert all("\n### " in topic for topic in TOPICS)


def test_entries_are_numbered_in_sequence() -> None:
    assert [int(number) for number, _, _ in ENTRIES] == list(range(1, len(TITLES) + 1))


def test_each_entry_begins_with_its_status_and_month() -> None:
    assert [number for number, status, _ in ENTRIES if not STATUS.fullmatch(status)] == []


def test_each_entry_is_short() -> None:
    long = {number: len(words) for number, _, text in ENTRIES if len(words := words_of(text)) > MOST_WORDS}

    assert long == {}
    assert all(words_of(text) for _, _, text in ENTRIES)


def test_modules_refer_to_entries_that_name_them() -> None:
    """An entry that is inserted changes the numbers after it."""
    texts = {number: text for number, _, text in ENTRIES}
    references = [(path, each) for path in ROOT.glob("layers/**/*.py") for each in REFERENCE.findall(path.read_text())]

    assert len(references) > 20
    assert [(path.name, number) for path, number in references if not is_named(path, texts.get(number, ""))] == []


def test_entries_name_files_that_exist() -> None:
    files = FILE.findall(TEXT)

    assert len(files) > 20
    assert [
        file for file in files if not any((ROOT / base / file).exists() for base in ("", "layers/core/stint"))
    ] == []


def is_named(path: Path, text: str) -> bool:
    """Return whether an entry names a module, or its folder, by its path or by its import."""
    inside = str(path.relative_to(ROOT)).removeprefix("layers/core/stint/")
    folders = [f"{folder}/" for folder in Path(inside).parents if folder.name]
    names = [inside, *folders, *(folder.rstrip("/") for folder in folders), f"stint.{inside.removesuffix('.py')}"]
    return any(f"`{name}`" in text for name in names)


def words_of(text: str) -> list[str]:
    """Return the words of a text. The lines and marks of a table are none."""
    return [word for word in text.split() if re.search(r"\w", word)]
