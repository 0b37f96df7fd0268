"""Examples of the documentation work with a stack that needs a key."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [page for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")) if "\ncurl" in page.read_text()]
CLIENTS = ("OpenAI(", "LlamaStackClient(")
EXAMPLES = [
    path for path in (ROOT / "docs" / "examples").glob("*.py") if any(name in path.read_text() for name in CLIENTS)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_with_requests_says_how_the_key_is_sent(page: Path) -> None:
    assert "Authorization: Bearer $STINT_API_KEY" in page.read_text()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_each_client_of_an_example_sends_the_key_of_the_environment(example: Path) -> None:
    lines = [line for line in example.read_text().splitlines() if any(name in line for name in CLIENTS)]

    made = [line for line in lines if "import" not in line]
    assert made
    assert [line for line in made if 'os.environ.get("STINT_API_KEY"' not in line] == []


def test_the_pages_and_examples_are_found() -> None:
    assert {"README.md", "security.md", "tools.md"} <= {page.name for page in PAGES}
    assert {"conversation.py", "responses.py", "rag.py"} <= {example.name for example in EXAMPLES}
