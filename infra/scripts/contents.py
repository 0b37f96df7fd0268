"""The tables of contents of pages, whose links are the anchors that GitHub makes of headings."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.scripts.page_parts import replace_part

LONG = 10_000
"""Bytes from which a page has a table of contents."""

TOPICS_ONLY = ("decisions.md",)
"""Pages whose tables of contents have only the first level of headings, because the second would be a page itself."""

LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Heading:
    """A heading of a page. The title is level 1."""

    level: int
    title: str
    anchor: str


def headings_of(text: str) -> Iterator[Heading]:
    """Yield the headings of a page. A second heading of the same text has an anchor with a number."""
    seen: Counter[str] = Counter()
    in_code = False
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        if not in_code and (found := re.fullmatch(r"(#{1,6}) (.+)", line)):
            anchor = anchor_of(found[2])
            yield Heading(len(found[1]), LINK.sub(r"\1", found[2]), f"{anchor}-{seen[anchor]}".removesuffix("-0"))
            seen[anchor] += 1


def anchor_of(heading: str) -> str:
    """Return the anchor of the first heading with this text, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", LINK.sub(r"\1", heading).strip().lower()).replace(" ", "-")


def needs_contents(text: str) -> bool:
    """Return whether a page is long enough for a table of contents, not counting the table itself."""
    return len(re.sub(r"<!-- contents -->.*<!-- end of contents -->", "", text, flags=re.DOTALL).encode()) > LONG


def write_contents(path: Path, text: str) -> str:
    """Return the text of a page with its table of contents. Raises MissingPart."""
    deepest = 2 if path.name in TOPICS_ONLY else 3
    lines = [
        f"{'  ' * (each.level - 2)}- [{each.title}](#{each.anchor})"
        for each in headings_of(text)
        if 2 <= each.level <= deepest
    ]
    return replace_part(path.name, text, "contents", "\n".join(lines))
