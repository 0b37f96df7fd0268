"""Lines of the welcome of `make run`, and the commands that it prints."""

from pathlib import Path

import pytest
from infra.local.environment import warn_of_bedrock
from infra.local.run import make_command
from infra.local.tool_functions import TOOLS, describe_tools


@pytest.mark.parametrize(
    ("folder", "port", "fresh", "command"),
    [
        (".stint", 8321, False, "make run"),
        (".stint", 8321, True, "FRESH=1 make run"),
        ("other", 8321, True, "STATE=other FRESH=1 make run"),
        ("my data", 9000, True, "STATE='my data' PORT=9000 FRESH=1 make run"),
        ("other", 0, False, "STATE=other make run"),
    ],
)
def test_a_command_repeats_the_variables_that_differ(folder: str, port: int, fresh: bool, command: str) -> None:
    assert make_command(Path(folder), port, fresh=fresh) == command


def test_the_users_functions_are_named_up_to_five() -> None:
    template = Path("../shop-tools/template.yaml")
    names = [f"f{number}" for number in range(7)]

    assert describe_tools(template, names[:1]) == ["  tools  f0 (../shop-tools/template.yaml)"]
    assert describe_tools(template, names) == ["  tools  f0, f1, f2, f3, f4 and 2 more (../shop-tools/template.yaml)"]
    assert describe_tools(template, []) == ["  tools  no functions (../shop-tools/template.yaml)"]
    assert describe_tools(TOOLS, names) == []


def test_the_models_of_bedrock_need_credentials() -> None:
    (warning,) = warn_of_bedrock({"STINT_DEFAULT_MODEL": "bedrock/a", "STINT_EMBEDDING_MODEL": "bedrock/b"})

    assert "this shell has none (STINT_DEFAULT_MODEL, STINT_EMBEDDING_MODEL" in warning
    assert warn_of_bedrock({"STINT_DEFAULT_MODEL": "scripted/demo"}) == []
