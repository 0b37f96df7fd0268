"""The command of each operation in the OpenAPI document."""

import json
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from infra.local.engine import ROOT
from infra.openapi.commands import write_body, write_command
from infra.openapi.document import describe_api

from stint.http.routes.inspection import BUILT_URL

VARIABLE = re.compile(r"\$([A-Z_]+)")


def list_commands() -> Iterator[tuple[str, str, dict[str, Any], str]]:
    for path, item in describe_api()["paths"].items():
        for method, operation in item.items():
            for sample in operation["x-codeSamples"]:
                yield method, path, operation, sample["source"]


COMMANDS = list(list_commands())


def options(words: list[str], name: str) -> list[str]:
    return [value for option, value in pairwise(words) if option == name]


def test_each_operation_has_a_command_for_each_example_and_each_form() -> None:
    for _, _, operation, _ in COMMANDS:
        content = operation.get("requestBody", {}).get("content", {})
        examples = content.get("application/json", {}).get("examples", {})
        labels = [sample.get("label") for sample in operation["x-codeSamples"]]

        wanted: list[str | None] = [example["summary"] for example in examples.values()]
        wanted += ["Upload a file"] if "multipart/form-data" in content else []
        assert labels == (wanted or [None])
        assert {sample["lang"] for sample in operation["x-codeSamples"]} == {"Shell"}


@pytest.mark.parametrize(
    ("method", "path", "operation", "command"),
    COMMANDS,
    ids=[f"{each[2]['operationId']}-{number}" for number, each in enumerate(COMMANDS)],
)
def test_a_command_sends_what_the_document_says(
    method: str, path: str, operation: dict[str, Any], command: str
) -> None:
    words = shlex.split(command)
    url = next(word for word in words if word.startswith(BUILT_URL))
    headers = options(words, "-H")

    assert words[0] == "curl"
    assert options(words, "-X") == ([] if method == "get" else [method.upper()])
    assert re.fullmatch(re.sub(r"{\w+}", "[^{}]+", path), url.removeprefix(BUILT_URL))
    assert ("Authorization: Bearer $STINT_API_KEY" in headers) == ("x-required-scope" in operation)
    bodies = [VARIABLE.sub("an id", body) for body in options(words, "-d")]
    streams = [*operation["responses"].get("200", {}).get("content", ())] == ["text/event-stream"]
    assert len(bodies) == sum("Content-Type: application/json" in header for header in headers)
    for body in bodies:
        assert ("-sSN" in words) == (streams or bool(json.loads(body).get("stream")))
    form = operation.get("requestBody", {}).get("content", {}).get("multipart/form-data")
    if fields := {field.partition("=")[0] for field in options(words, "-F")}:
        assert set(form["schema"]["required"]) == fields
    assert bool(bodies) + bool(fields) == ("requestBody" in operation)


def test_variables_of_the_shell_are_expanded_and_nothing_else_is() -> None:
    for _, _, _, command in COMMANDS:
        outside = re.sub(r"'[^']*'", "", command)  # a shell expands nothing between single quotes

        assert not re.search(r"[`!;&|<>()]", outside)
        assert outside.count("$") == len(VARIABLE.findall(outside))
        assert "$" not in "".join(re.findall(r"'([^']*)'", command))


@pytest.mark.parametrize(
    "text", ["It's", "'; rm -rf ~ #", '"quoted"', "$(date) `date` $HOME \\ !!", "line\nbreak", "é", "''"]
)
def test_a_body_reaches_curl_as_it_is(text: str) -> None:
    [option, body] = shlex.split(write_body({"input": text}))

    assert (option, json.loads(body)) == ("-d", {"input": text})


def test_ids_in_bodies_are_the_variables_of_paths() -> None:
    body = write_body({"file_id": "file-01a202309738700096f0a3d1a6c1f2aa"})

    assert body == """-d '{"file_id": "'"$FILE_ID"'"}'"""


def test_a_file_that_a_command_sends_is_in_the_folder_of_the_repository() -> None:
    fields = [field for *_, command in COMMANDS for field in options(shlex.split(command), "-F")]
    names = {field.partition("=@")[2] for field in fields if "=@" in field}

    assert names
    assert all((ROOT / name).is_file() for name in names)


def test_a_download_is_written_to_a_file() -> None:
    operation = {"operationId": "read", "responses": {"200": {"content": {"application/octet-stream": {}}}}}

    assert write_command("get", "/v1/files/{file_id}/content", operation, []).splitlines()[0] == (
        f'curl -sS -o content "{BUILT_URL}/v1/files/$FILE_ID/content" \\'
    )
