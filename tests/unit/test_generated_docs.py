"""Documents that scripts write are committed as they write them: tables of contents, and the page of settings."""

import re
from pathlib import Path

import pytest
from infra.scripts.contents import LONG, anchor_of, headings_of, needs_contents, write_contents
from infra.scripts.docs import documents
from infra.scripts.page_parts import MissingPart
from infra.scripts.settings_page import code, default_of
from pydantic import SecretStr
from samtranslator.yaml_helper import yaml_parse

from stint.settings import Settings, variable_of

ROOT = Path(__file__).parents[2]
DOCUMENTS = documents()
SETTINGS = (ROOT / "docs" / "settings.md").read_text()
ROWS = re.findall(r"^\| `([A-Z_]+)` \| (.*?) ?\| (.*?) ?\| (.*) \|$", SETTINGS, flags=re.MULTILINE)
"""The variable, the parameters, the default and the meaning of each setting."""

MARKS = "<!-- contents -->\n<!-- end of contents -->\n"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_each_document_is_what_make_docs_writes(path: Path) -> None:
    assert path.read_text() == DOCUMENTS[path]


def test_each_long_page_has_a_table_of_contents() -> None:
    pages = [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    long = [page for page in pages if needs_contents(page.read_text())]

    assert len(long) > 10
    assert [page.name for page in long if "\n<!-- contents -->\n" not in page.read_text()] == []


def test_a_table_of_contents_does_not_make_a_page_long() -> None:
    text = "x" * (LONG - len(MARKS))

    assert not needs_contents(text + MARKS)
    assert not needs_contents(text + MARKS.replace("\n", "\n- [A](#a)\n", 1))
    assert needs_contents(text + "x" * len(MARKS) + "x" + MARKS)


def test_a_long_page_without_marks_is_refused_with_the_lines_to_add() -> None:
    with pytest.raises(MissingPart, match=r"tools\.md .*'<!-- contents -->' and '<!-- end of contents -->'"):
        write_contents(Path("tools.md"), "# Tools\n")


def test_contents_have_two_levels_and_those_of_decisions_one() -> None:
    text = f"# Page\n\n{MARKS}\n## A\n\n### B\n\n#### C\n"

    assert "\n- [A](#a)\n  - [B](#b)\n\n<!-- end" in write_contents(Path("tools.md"), text)
    assert "\n- [A](#a)\n\n<!-- end" in write_contents(Path("decisions.md"), text)


def test_comments_of_commands_are_no_headings() -> None:
    assert [each.title for each in headings_of("# A\n\n```sh\n# not this\n```\n\n## B\n")] == ["A", "B"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("`make run`", "make-run"),
        ("MCP servers (`model-context-protocol`)", "mcp-servers-model-context-protocol"),
        ("llama-stack-client 0.2.12 (Python)", "llama-stack-client-0212-python"),
        ("Forks, and `fork_from`", "forks-and-fork_from"),
        ("See [limits](limits.md#bodies)", "see-limits"),
        ("A & B", "a--b"),
    ],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    assert anchor_of(heading) == anchor


def test_the_anchor_of_a_repeated_heading_has_a_number() -> None:
    assert [each.anchor for each in headings_of("# A\n## B\n## B\n### B\n")] == ["a", "b", "b-1", "b-2"]


def test_each_setting_is_on_the_page_once_with_its_default_and_meaning() -> None:
    fields = {variable_of(name): field for name, field in Settings.model_fields.items()}

    assert sorted(row[0] for row in ROWS) == sorted(fields)
    assert [row[0] for row in ROWS if plain(row[3]) != fields[row[0]].description] == []
    assert [row[0] for row in ROWS if not row[2].startswith(code(default_of(fields[row[0]])))] == []


def plain(meaning: str) -> str:
    return re.sub(r"\[([\w.-]+)\]\(\1\)", r"docs/\1", meaning).replace("\\", "")


@pytest.mark.parametrize(
    ("variable", "set_by", "default"),
    [
        ("STINT_TABLE", "the stack", ""),
        ("STINT_LEASE_SECONDS", "`LeaseSeconds`", "`30`"),
        ("STINT_HEARTBEAT_SECONDS", "", "`15`"),
        ("STINT_VECTOR_INDEX", "`VectorIndex`", "`packed`, `s3-vectors` in a stack"),
        ("STINT_AGENTCORE_INTERPRETER", "`AgentCoreInterpreterArn`, `CodeInterpreter`", ""),
        ("STINT_IAM_ROLES", "`IamRoles`", ""),
        ("STINT_PRICES", "`Prices`", ""),
        ("STINT_UNSIGNED_CONTENT_UNTIL", "`UnsignedContentUntil`", ""),
    ],
)
def test_a_setting_is_shown_with_what_sets_it(variable: str, set_by: str, default: str) -> None:
    assert [row[1:3] for row in ROWS if row[0] == variable] == [(set_by, default)]


def test_each_parameter_of_the_template_is_on_the_page() -> None:
    parameters = yaml_parse((ROOT / "template.yaml").read_text())["Parameters"]

    assert len(parameters) > 80
    assert [name for name in parameters if not re.search(rf"^\|.*`{name}`.*\|$", SETTINGS, re.MULTILINE)] == []


def test_each_secret_is_in_the_section_of_secrets() -> None:
    section = SETTINGS.split("\n## Secrets\n")[1].split("\n## ")[0]
    keys = [variable_of(name) for name, field in Settings.model_fields.items() if field.annotation is SecretStr]
    parameters = [name for name in re.findall(r"`(\w+)`", SETTINGS) if re.search(r"SecretArns?$", name)]

    assert len(keys) == 5
    assert [name for name in {*keys, *parameters} if f"{name}" not in section] == []


def test_the_variables_of_make_run_are_those_of_its_recipe() -> None:
    section = SETTINGS.split("\n## `make run`\n")[1].split("\n## ")[0]
    variables = re.findall(r"^\| `([A-Z]+)=", section, re.MULTILINE)
    recipe = re.search(r"^run:.*\n(?:\t.*\n)+", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert recipe
    assert sorted(variables) == sorted({*re.findall(r"\$\(([A-Z]+)\)", recipe[0])} - {"BIN", "MAKE", "RUN", "VENV"})
