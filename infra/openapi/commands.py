"""Commands of curl that send the examples, for the OpenAPI document: `x-codeSamples`, which Redoc shows, too."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

from infra.openapi.examples import AGENT_ID, CALL_ID, FILE_ID, PART_ID, RESPONSE_ID, SESSION_ID, TURN_ID

from stint.http.routes.inspection import BUILT_MODEL, BUILT_URL

PARAMETER = re.compile(r"{(\w+)}")
VALUES = {
    "kind": "session",
    "model_id": BUILT_MODEL,
    "provider_id": "openai",
    "shield_id": "secrets",
    "stop_id": "$SESSION_ID",
    "tool_name": "web_search",
    "toolgroup_id": "builtin::websearch",
    "user": "$END_USER",
    "vector_db_id": "llamas",
}
"""Values of parameters in paths. Other ids are variables of the shell: `$AGENT_ID`."""

CONTAINER_FILE = {"file_id": "$CONTAINER_FILE_ID"}
OWN_VALUES = {
    "get_container_file": CONTAINER_FILE,
    "get_container_file_content": CONTAINER_FILE,
    "delete_container_file": CONTAINER_FILE,
    "unregister_model": {"model_id": "fast"},
    "unregister_toolgroup": {"toolgroup_id": "weather"},
}
"""Values for single operations: ids of another kind, and what the examples register."""

VARIABLES = {
    AGENT_ID: "$AGENT_ID",
    CALL_ID: "$CALL_ID",
    FILE_ID: "$FILE_ID",
    PART_ID: "$PART_ID",
    RESPONSE_ID: "$RESPONSE_ID",
    SESSION_ID: "$SESSION_ID",
    TURN_ID: "$TURN_ID",
}
"""The same variables in place of the ids in bodies."""

FORMS = {
    "add_container_file": ("file=@README.md",),
    "create_file": ("purpose=assistants", "file=@README.md"),
    "create_upload_part": ("data=@README.md",),
}
"""Fields of forms. The file is in the folder of the repository, so that the command runs there as it is copied."""

LONGEST_LINE = 80
"""A longer body has a line for each value."""


def add_commands(described: dict[str, Any]) -> None:
    """Add commands to each operation of an OpenAPI document: one for each example of its body."""
    for path, item in described["paths"].items():
        for method, operation in item.items():
            operation["x-codeSamples"] = [
                {"lang": "Shell", **label, "source": write_command(method, path, operation, body)}
                for label, body in list_bodies(operation)
            ]


def list_bodies(operation: dict[str, Any]) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Yield the label and the options of each body with which an operation can be called."""
    content = operation.get("requestBody", {}).get("content", {})
    for example in content.get("application/json", {}).get("examples", {}).values():
        yield {"label": example["summary"]}, ['-H "Content-Type: application/json"', write_body(example["value"])]
    if "multipart/form-data" in content:
        yield {"label": "Upload a file"}, [f'-F "{field}"' for field in FORMS[operation["operationId"]]]
    if not content:
        yield {}, []


def write_body(value: dict[str, Any]) -> str:
    """Return the option that sends a JSON object, with variables of the shell in place of ids."""
    line = json.dumps(value, ensure_ascii=False)
    text = line if len(line) <= LONGEST_LINE else json.dumps(value, indent=2, ensure_ascii=False)
    quoted = shlex.quote(text)
    for example, variable in VARIABLES.items():
        quoted = quoted.replace(f'"{example}"', f'''"'"{variable}"'"''')
    return f"-d {quoted}"


def write_command(method: str, path: str, operation: dict[str, Any], body: list[str]) -> str:
    """Return the command of an operation. The API key is a variable of the shell, too."""
    values = VALUES | OWN_VALUES.get(operation["operationId"], {})
    filled = PARAMETER.sub(lambda found: values.get(found[1], f"${found[1].upper()}"), path)
    types = set(operation["responses"].get("200", {}).get("content", ()))  # a 202 has no content
    is_stream = types == {"text/event-stream"} or any('"stream": true' in option for option in body)
    flags = ["-sSN" if is_stream else "-sS"]
    flags += [] if method == "get" else [f"-X {method.upper()}"]
    flags += ["-o content"] if "application/octet-stream" in types else []
    key = [] if operation.get("security") == [] else ['-H "Authorization: Bearer $STINT_API_KEY"']
    return " \\\n  ".join([" ".join(["curl", *flags, f'"{BUILT_URL}{filled}"']), *key, *body])
