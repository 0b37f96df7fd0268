"""Lambda functions of a user's template, invoked as the product does."""

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from infra.local.cloud import Plan, running_cloud
from infra.local.engine import RunningEngine
from infra.local.errors import LocalCloudError
from tests.system.data_outputs import OUTPUTS

NO_ENGINE = RunningEngine("http://127.0.0.1:9", "us-east-1", OUTPUTS)
NO_KEY = {"STINT_CREDENTIALS_KEY_ARN": "arn:aws:kms:us-east-1:000000000000:key/none"}
TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Tool:
    Type: AWS::Serverless::Function
    Properties: {{FunctionName: {name}, CodeUri: code, Handler: app.handler, Runtime: {runtime}}}
"""
HANDLER = """
def handler(event, context):
    return [event, context.client_context and context.client_context.custom]
"""


def template(folder: Path, name: str = "my-tool", runtime: str = "python3.13") -> Path:
    (folder / "code").mkdir()
    (folder / "code" / "app.py").write_text(HANDLER)
    file = folder / "template.yaml"
    file.write_text(TEMPLATE.format(name=name, runtime=runtime))
    return file


async def invoke(tools: Path, context: bytes | None = None, name: str = "my-tool") -> httpx.Response:
    async with running_cloud(Plan(NO_KEY, tools=tools), NO_ENGINE, lambda subject, line: None) as cloud:
        url = f"{cloud.services['AWS_ENDPOINT_URL_LAMBDA']}/2015-03-31/functions/{name}/invocations"
        headers = {} if context is None else {"X-Amz-Client-Context": context.decode()}
        async with httpx.AsyncClient(trust_env=False, timeout=120) as client:
            return await client.post(url, json={"a": 1}, headers=headers)


async def test_a_function_of_the_users_template_is_invoked_by_name(tmp_path: Path) -> None:
    answer = await invoke(template(tmp_path))

    assert answer.json() == [{"a": 1}, None]


@pytest.mark.parametrize(
    "function",
    ["agents", "turns", "responses", "knowledge", "october", "openai_agents", "protocols", "registry", "worker"],
)
async def test_tools_cannot_invoke_functions_of_stint(tmp_path: Path, function: str) -> None:
    answer = await invoke(template(tmp_path), name=f"stint-{function}")

    assert (answer.status_code, answer.headers["x-amzn-ErrorType"]) == (403, "AccessDeniedException")


async def test_the_client_context_reaches_the_function(tmp_path: Path) -> None:
    custom = {"idempotency_key": "call_1", "name": "Zoë"}
    context = base64.b64encode(json.dumps({"custom": custom}, ensure_ascii=False).encode())

    answer = await invoke(template(tmp_path), context)

    assert answer.json() == [{"a": 1}, custom]


@pytest.mark.parametrize(
    "context", [b"no base64", base64.b64encode(b"[]"), base64.b64encode(json.dumps({"custom": "x" * 3000}).encode())]
)
async def test_a_client_context_that_lambda_refuses_is_refused(tmp_path: Path, context: bytes) -> None:
    answer = await invoke(template(tmp_path), context)

    assert answer.status_code == 400
    assert answer.headers["x-amzn-ErrorType"] == "InvalidRequestContentException"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"runtime": "nodejs24.x"}, r"Tool: the local cloud runs Python, not nodejs24\.x"),
        ({"name": "stint-turns"}, "Stint already has a function 'stint-turns'"),
    ],
)
async def test_a_function_that_cannot_run_is_named(tmp_path: Path, fault: dict[str, Any], said: str) -> None:
    tools = template(tmp_path, **fault)

    with pytest.raises(LocalCloudError, match=said):
        await invoke(tools)
