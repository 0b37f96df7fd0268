"""Links between the documents lead to files and headings that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

from infra.scripts.contents import headings_of

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), ROOT / "events" / "README.md", *(ROOT / "docs").rglob("*.md")]


def links() -> Iterator[tuple[Path, str]]:
    """Yield each page with each of its links that is no URL."""
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if "://" not in link:
                yield page, link


def has_target(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not anchor:
        return target.exists()
    return target.suffix == ".md" and anchor in {each.anchor for each in headings_of(target.read_text())}


def test_each_link_leads_to_a_file_or_a_heading() -> None:
    assert sum("#" in link for _, link in links()) > 50
    assert [(page.name, link) for page, link in links() if not has_target(page, link)] == []
