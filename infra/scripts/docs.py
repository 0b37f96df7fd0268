"""Write what is generated in `docs`, for `make docs`: settings, tables of contents and the picture of the parts."""

import sys
from pathlib import Path

from infra.scripts.architecture_picture import draw_architecture
from infra.scripts.contents import needs_contents, write_contents
from infra.scripts.settings_page import write_settings

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    for path, text in documents().items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"Wrote {path.relative_to(ROOT)}.")
    return 0


def documents() -> dict[Path, str]:
    """Return the text of each generated document. Raises MissingPart."""
    pages = {path: path.read_text() for path in (ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"))}
    settings = ROOT / "docs" / "settings.md"
    pages[settings] = write_settings(pages[settings])
    texts = {
        path: write_contents(path, text) if needs_contents(text) or "<!-- contents -->" in text else text
        for path, text in pages.items()
    }
    return {**texts, ROOT / "docs" / "architecture.svg": draw_architecture()}


if __name__ == "__main__":
    sys.exit(main())
