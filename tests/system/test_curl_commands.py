"""The commands of the API reference, run one after the other by a shell with curl against `make run` with AUTH=on."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.system.run_process import Run

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")

VARIABLE = re.compile(r"\$([A-Z_]+)")
CREATED = {
    "create_agent: An agent with a client tool": {"AGENT_ID": "agent_id"},
    "create_session: A session": {"SESSION_ID": "session_id"},
    "create_turn: A streamed turn": {"TURN_ID": "turn_id", "STEP_ID": "step_id", "CALL_ID": "call_id"},
    "create_response: A text": {"RESPONSE_ID": "id"},
    "list_response_steps": {"STEP_ID": "first_id"},
    "create_conversation: A conversation with its first item": {"CONVERSATION_ID": "id"},
    "create_conversation_items: An item": {"ITEM_ID": "id"},
    "create_chat_completion: A stored chat": {"COMPLETION_ID": "id"},
    "create_file: Upload a file": {"FILE_ID": "id"},
    "create_upload: A file of 10 MB": {"UPLOAD_ID": "id"},
    "create_upload_part: Upload a file": {"PART_ID": "id"},
    "create_container: A container with a file": {"CONTAINER_ID": "id"},
    "add_container_file: Upload a file": {"CONTAINER_FILE_ID": "id"},
    "create_automation: A new session on each weekday": {"AUTOMATION_ID": "id"},
    "create_automation_invocation": {"INVOCATION_ID": "id"},
    "create_vault: A vault": {"VAULT_ID": "id"},
    "create_vector_store: A store with a file": {"VECTOR_STORE_ID": "id"},
    "create_file_batch: A file": {"BATCH_ID": "id"},
    "create_key: A key for an application": {"KEY_ID": "id"},
    "create_webhook_endpoint: An endpoint for failures": {"WEBHOOK_ENDPOINT_ID": "id"},
}
"""The variables that get the ids in the answers to commands, and their fields."""


REFUSED = {
    "invoke_tool: A search": 502,
    "query_spans": 501,
    "get_mcp_resource": 404,
    "complete_upload: The parts, in their order": 400,
    "test_webhook_endpoint: A sample event": 403,
    "delete_agent_session": 404,
}
"""There is no key of a search engine, spans are not supported, no issuer of tokens is set, the file is smaller than the
one of the example, and earlier commands have stopped the tenant, and deleted the session."""
LEFT_OUT = r"mcp\.example\.com|\$CREDENTIAL_ID|curl -sSN .*/sessions/\$SESSION_ID/events"
"""Commands that need a server which exists, and a stream that stays open."""
UNREADY = ("get_vector_store_file_content", "list_vector_store_file_chunks")
"""Operations that need what the worker may not have done yet."""


@dataclass
class Shell:
    """A shell that runs commands in a folder, with a key and the ids of what they created."""

    folder: Path
    variables: dict[str, str]

    def run(self, name: str, command: str) -> int:
        """Run a command, and return the status of its answer."""
        missing = set(VARIABLE.findall(command)) - set(self.variables)
        assert not missing, f"{name}: nothing has created {missing}"
        done = subprocess.run(
            ["sh", "-c", f'{command} -w "\n%{{http_code}}"'],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **self.variables},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        body, _, status = done.stdout.rpartition("\n")
        print(name, status, body[:500])
        for variable, field in CREATED.get(name, {}).items():
            if found := re.search(rf'"{field}": ?"([^"]+)"', body):
                self.variables[variable] = found[1]
        return int(status)


def list_commands(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the commands with their names, those that end or delete something at last."""
    operations = [
        (place_of(method, path, operation["operationId"]), operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    return [
        (": ".join(filter(None, (operation["operationId"], sample.get("label")))), sample["source"])
        for _, operation in sorted(operations, key=lambda each: each[0])
        for sample in operation["x-codeSamples"]
    ]


def place_of(method: str, path: str, name: str) -> tuple[int, int]:
    """Return where an operation comes in the order of all. What is inside is deleted first."""
    if method == "delete":
        return 2, -path.count("/")
    if name.startswith(("cancel_", "complete_upload")):
        return 1, 0
    # Sessions and automations of the Agents API use the agent and the session of Llama Stack's commands.
    uses_agent = path.startswith(("/v1/agents/sessions", "/v1/agents/automations"))
    return 0, 1 if uses_agent else 0 if path.startswith("/v1/agents") else 2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    run = Run(tmp_path_factory.mktemp("commands"), 0, "--auth", "on")
    run.read_until("Ctrl-C stops")
    yield run
    run.stop()


def test_commands_work_as_they_are_copied(run: Run, tmp_path: Path) -> None:
    (key,) = set(re.findall(r"stk_\w+", "".join(run.lines)))
    (tmp_path / "README.md").write_text("Llamas hum.")
    headers = {"authorization": f"Bearer {key}"}
    url = f"http://127.0.0.1:{run.port}/prod/v1/openapi.json"
    document: dict[str, Any] = httpx.get(url, headers=headers, trust_env=False, timeout=120).json()
    shell = Shell(tmp_path, {"STINT_API_KEY": key, "END_USER": "ann"})

    commands = [each for each in list_commands(document) if not re.search(LEFT_OUT, each[1])]
    statuses = {name: shell.run(name, command) for name, command in commands}

    refused = {name: status for name, status in statuses.items() if status not in (200, 202)}
    assert len(statuses) > 130
    assert {name: status for name, status in refused.items() if name not in UNREADY} == REFUSED
    assert {refused.get(name, 409) for name in UNREADY} == {409}
    assert (tmp_path / "content").read_text() == "Llamas hum."
