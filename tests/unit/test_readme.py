"""Statements of the README are true."""

import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_every_make_target_named_in_readme_exists() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))

    named = {word for command in re.findall(r"make ([a-z ]+)", README) for word in command.split()}

    assert (
        named & {"run", "test", "build", "invoke", "bench", "openapi", "lint", "types", "arch", "validate"} <= targets
    )


def test_every_file_that_readme_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)

    missing = [link for link in links if not (Path(__file__).parents[2] / link).exists()]

    assert links
    assert missing == []
