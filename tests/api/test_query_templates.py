"""Templates of query generators are checked when an agent is created."""

import httpx
import pytest
from tests.api.api_client import assert_error

WRONG = {"type": "llm", "model": "scripted/demo", "template": "\n{% for m in messages %}{{ m.__class__ }}{% endfor %}"}
RIGHT = WRONG | {"template": "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"}


@pytest.mark.parametrize("path", ["query_generator_config", "query_config.query_generator_config"])
def test_an_agent_with_a_wrong_template_is_refused_with_its_line(http: httpx.Client, path: str) -> None:
    config = {"model": "scripted/demo", "instructions": "", "enable_session_persistence": True}

    def create(generator: dict[str, str]) -> httpx.Response:
        toolgroups = ["builtin::websearch", {"name": "builtin::rag", "args": nest(path, generator)}]
        return http.post("/v1/agents", json={"agent_config": {**config, "toolgroups": toolgroups}})

    error = assert_error(create(WRONG), 400, "invalid_query_template")

    assert create(RIGHT).status_code == 200
    assert error["param"] == f"agent_config.toolgroups[1].args.{path}.template"
    assert "line 2: there is no field '__class__'" in error["message"]


def nest(path: str, value: dict[str, str]) -> dict[str, object]:
    first, _, rest = path.partition(".")
    return {first: nest(rest, value) if rest else value}
