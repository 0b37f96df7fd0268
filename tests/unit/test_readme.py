"""Statements of the README are true."""

import re
from pathlib import Path

from pydantic import SecretStr

from stint.settings import Settings, variable_of

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_settings_table_lists_every_setting_with_its_default_and_meaning() -> None:
    expected = {}
    for name, field in Settings.model_fields.items():
        default = field.default.get_secret_value() if isinstance(field.default, SecretStr) else field.default
        expected[variable_of(name)] = (f"`{default}`" if default not in ("", None) else "", field.description)

    rows = re.findall(r"^\| `([A-Z_]+)` \| (.*?) ?\| (.*) \|$", README, flags=re.MULTILINE)

    assert {variable: (default, meaning) for variable, default, meaning in rows} == expected


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
