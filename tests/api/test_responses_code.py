"""The hosted code interpreter, whose code runs in the sandbox, and its containers."""

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import (
    RESPONSES,
    assert_refused,
    events_of,
    follow,
    get,
    item_of,
    kinds,
    openai_client,
    post,
    respond,
    text_of,
    types_of,
)
from tests.security.sandbox.conftest import Sandbox

from stint.domain.ids import new_id
from stint.tools.code_interpreter.runs import RunResult

AUTO = {"type": "code_interpreter", "container": {"type": "auto"}}
OUTPUTS: Literal["code_interpreter_call.outputs"] = "code_interpreter_call.outputs"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclass
class SandboxRunner:
    """Runs code in the function `sandbox`, in namespaces."""

    sandbox: Sandbox

    async def run(self, code: str, files: Mapping[str, bytes], /) -> RunResult:
        given = [{"name": name, "content": base64.b64encode(content).decode()} for name, content in files.items()]
        return RunResult.model_validate(await asyncio.to_thread(self.sandbox.run, code, files=given))


@dataclass
class ScriptedRunner:
    """Writes the files that the code names as JSON, and prints the names of its files."""

    async def run(self, code: str, files: Mapping[str, bytes], /) -> RunResult:
        plan = json.loads(code)
        written = [
            {"name": name, "content": base64.b64encode(content.encode()).decode()}
            for name, content in plan.get("write", {}).items()
        ]
        return RunResult.model_validate(
            {"stdout": " ".join(sorted(files)), "files": written, "removed": plan.get("remove", [])}
        )


@pytest.fixture
def sandbox(app_fixture: AppFixture, tmp_path: Path) -> Iterator[None]:
    before, app_fixture.runner = app_fixture.runner, SandboxRunner(Sandbox(tmp_path, isolated=True))
    app_fixture.made.clear()
    yield
    app_fixture.runner = before


@pytest.fixture
def scripted(app_fixture: AppFixture) -> Iterator[None]:
    before, app_fixture.runner = app_fixture.runner, ScriptedRunner()
    app_fixture.made.clear()
    yield
    app_fixture.runner = before


def call(code: str) -> str:
    return f"call: code_interpreter {json.dumps({'code': code})}"


def plan(**steps: Any) -> str:
    return call(json.dumps(steps))


def upload(http: httpx.Client, name: str, content: bytes) -> str:
    answer = http.post("/v1/files", files={"file": (name, content)}, data={"purpose": "user_data"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def files_of(http: httpx.Client, container_id: str) -> dict[str, str]:
    """Return the contents of a container's files by their names."""
    listed = http.get(f"/v1/containers/{container_id}/files").json()["data"]
    return {file["path"]: http.get(f"/v1/containers/{container_id}/files/{file['id']}/content").text for file in listed}


@pytest.mark.usefixtures("sandbox")
def test_code_reads_files_and_writes_files_that_can_be_downloaded(http: httpx.Client) -> None:
    table = upload(http, "in.csv", b"1,2")
    code = f"""
print(open('in.csv').read())
open('out.txt', 'w').write('made')
open('dot.png', 'wb').write({PIXEL!r})"""
    tool = {"type": "code_interpreter", "container": {"type": "auto", "file_ids": [table]}}

    response = respond(http, call(code), tools=[tool], include=[OUTPUTS])

    item = item_of(response, "code_interpreter_call")
    assert types_of(response) == ["code_interpreter_call", "message"]
    assert item["code"] == code
    assert item["status"] == "completed"
    assert item["outputs"] == [
        {"type": "logs", "logs": "1,2\n"},
        {"type": "image", "url": f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"},
    ]
    assert "out.txt" in text_of(response)
    assert get(http, response["id"], f"?include={OUTPUTS}") == response
    assert response["tools"] == [tool]
    files = http.get(f"/v1/containers/{item['container_id']}/files?order=asc").json()["data"]
    assert [(file["path"], file["source"], file["bytes"]) for file in files] == [
        ("in.csv", "user", 3),
        ("dot.png", "assistant", len(PIXEL)),
        ("out.txt", "assistant", 4),
    ]
    content = http.get(f"/v1/containers/{item['container_id']}/files/{files[2]['id']}/content")
    assert (content.text, content.headers["content-type"]) == ("made", "application/octet-stream")
    assert "sandbox" in content.headers["content-security-policy"]


@pytest.mark.usefixtures("sandbox")
def test_an_error_of_the_code_is_an_output(http: httpx.Client) -> None:
    response = respond(http, call("1/0"), tools=[AUTO], include=[OUTPUTS])

    item = item_of(response, "code_interpreter_call")
    assert "ZeroDivisionError" in item["outputs"][0]["logs"]
    assert item["status"] == "completed"


@pytest.mark.usefixtures("scripted")
def test_the_events_build_the_item(http: httpx.Client) -> None:
    events = follow(http, plan(write={"a.txt": "a"}), tools=[AUTO])

    assert kinds(events)[:9] == [
        "created",
        "in_progress",
        "output_item.added",
        "code_interpreter_call.in_progress",
        "code_interpreter_call_code.delta",
        "code_interpreter_call_code.done",
        "code_interpreter_call.interpreting",
        "code_interpreter_call.completed",
        "output_item.done",
    ]
    added, done = (next(e["item"] for e in events if e["type"].endswith(kind)) for kind in ("added", "item.done"))
    assert (added["code"], added["status"]) == ("", "in_progress")
    assert done["code"] == events[4]["delta"] == events[5]["code"]
    assert (done["status"], done["container_id"]) == ("completed", added["container_id"])


@pytest.mark.usefixtures("scripted")
def test_files_that_the_answer_names_are_cited(http: httpx.Client) -> None:
    events = follow(http, plan(write={"a.txt": "a", "b": "b"}), tools=[AUTO])
    response = events[-1]["response"]

    [note] = item_of(response, "message")["content"][0]["annotations"]
    text = text_of(response)
    assert text[note["start_index"] : note["end_index"]] == note["filename"] == "a.txt"
    listed = http.get(f"/v1/containers/{note['container_id']}/files/{note['file_id']}").json()
    assert (listed["path"], listed["object"]) == ("a.txt", "container.file")
    assert [e["annotation"] for e in events if e["type"].endswith("annotation.added")] == [note]
    assert get(http, response["id"])["output"] == response["output"]


@pytest.mark.usefixtures("scripted")
def test_the_files_of_a_container_stay_between_responses(http: httpx.Client) -> None:
    container = http.post("/v1/containers", json={"name": "mine"}).json()
    tool = {"type": "code_interpreter", "container": container["id"]}

    respond(http, plan(write={"a": "1", "b": "1"}), tools=[tool])
    second = respond(http, plan(write={"a": "2"}, remove=["b"]), tools=[tool], include=[OUTPUTS])

    assert item_of(second, "code_interpreter_call")["outputs"][0]["logs"] == "a b"
    assert files_of(http, container["id"]) == {"a": "2"}


@pytest.mark.usefixtures("scripted")
def test_code_runs_in_the_background_and_is_replayed(http: httpx.Client, app_fixture: AppFixture) -> None:
    with app_fixture.working():
        events = follow(http, plan(write={"a.txt": "a"}), tools=[AUTO], background=True)

    response = events[-1]["response"]
    replayed = events_of(http.get(f"{RESPONSES}/{response['id']}?stream=true").text)
    assert response["status"] == "completed"
    assert "code_interpreter_call_code.done" in kinds(events)
    assert replayed == events
    assert files_of(http, item_of(response, "code_interpreter_call")["container_id"]) == {"a.txt": "a"}


@pytest.mark.usefixtures("scripted")
def test_earlier_calls_are_in_the_context_of_the_next_response(http: httpx.Client, app_fixture: AppFixture) -> None:
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    first = respond(http, plan(write={"x": "1"}), tools=[AUTO], conversation=conversation, include=[OUTPUTS])

    respond(http, "And now?", conversation=conversation, model="recorded/demo")
    sent = str(app_fixture.last_request)
    respond(http, [*first["output"], {"role": "user", "content": "And?"}], model="recorded/demo")

    assert "code_interpreter" in sent
    assert "code_interpreter" in str(app_fixture.last_request)


@pytest.mark.usefixtures("scripted")
def test_the_choice_of_the_tool_reaches_the_model(http: httpx.Client, app_fixture: AppFixture) -> None:
    respond(http, plan(), tools=[AUTO], tool_choice={"type": "code_interpreter"}, model="recorded/demo")

    assert app_fixture.recorder.requests[0].tool_choice == "code_interpreter"


@pytest.mark.usefixtures("scripted")
def test_openais_client_parses_everything(server: Served, http: httpx.Client) -> None:
    with openai_client(server) as client:
        file = client.files.create(file=("in.txt", b"in"), purpose="user_data")
        container = client.containers.create(name="c", file_ids=[file.id])
        tool: Any = {"type": "code_interpreter", "container": container.id}
        with client.responses.stream(
            model="scripted/demo", input=plan(write={"o.txt": "o"}), tools=[tool], include=[OUTPUTS]
        ) as stream:
            types = {event.type for event in stream}
            response = stream.get_final_response()
        ran = next(item for item in response.output if item.type == "code_interpreter_call")
        files = client.containers.files.list(container.id, order="asc").data
        content = client.containers.files.content.retrieve(files[1].id, container_id=container.id).read()
        client.containers.files.delete(files[0].id, container_id=container.id)
        left = [each.path for each in client.containers.files.list(container.id)]
        client.containers.delete(container.id)

    assert "response.code_interpreter_call.interpreting" in types
    assert ran.outputs is not None
    assert ran.outputs[0].type == "logs"
    assert ([each.path for each in files], content, left) == (["in.txt", "o.txt"], b"o", ["o.txt"])
    assert http.get(f"/v1/containers/{container.id}").status_code == 404


def test_openais_client_adds_files_by_upload_and_by_id(server: Served, http: httpx.Client) -> None:
    with openai_client(server) as client:
        container = client.containers.create(name="c").id
        uploaded = client.containers.files.create(container, file=("pl\u00e4ne.txt", b"one"))
        again = client.containers.files.create(container, file=("../pl\u00e4ne.txt", b"two"))
        stored = client.files.create(file=("in.txt", b"in"), purpose="user_data")
        copied = client.containers.files.create(container, file_id=stored.id)

    assert [each.path for each in (uploaded, again, copied)] == ["pl\u00e4ne.txt", "pl\u00e4ne.txt", "in.txt"]
    assert (uploaded.source, uploaded.container_id, uploaded.bytes) == ("user", container, 3)
    assert files_of(http, container) == {"pl\u00e4ne.txt": "two", "in.txt": "in"}


@pytest.mark.parametrize(
    ("sent", "status", "code", "param"),
    [
        ({"files": {"file": (".bashrc", b"x")}}, 400, "invalid_request", "file"),
        ({"files": {"file": ("x" * 201, b"x")}}, 400, "invalid_request", "file"),
        ({"files": {"file": ("x.bin", b"x" * 3_500_001)}}, 400, "container_full", "file"),
        ({"files": {"other": ("x.bin", b"x")}}, 400, "invalid_request", "file"),
        ({"files": {"file": (None, b"x")}}, 400, "invalid_request", "file"),
        ({"files": {"file_id": (None, "file-none")}}, 400, "invalid_request", "file_id"),
        ({"json": {"file_id": 7}}, 400, "invalid_request", "file_id"),
        ({"json": {}}, 400, "invalid_request", "file_id"),
        ({"content": b"{", "headers": {"content-type": "application/json"}}, 400, "invalid_request", None),
        ({"content": b"x", "headers": {"content-type": "text/plain"}}, 415, "unsupported_media_type", "content-type"),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data"}}, 415, "unsupported_media_type", None),
        (
            {"files": {"file": ("x", b"x")}, "headers": {"sec-fetch-site": "cross-site", "origin": "https://evil"}},
            400,
            "invalid_request",
            "origin",
        ),
    ],
)
def test_additions_to_a_container_that_are_refused(
    http: httpx.Client, sent: dict[str, Any], status: int, code: str, param: str | None
) -> None:
    container = http.post("/v1/containers", json={"name": "c"}).json()["id"]

    answer = http.post(f"/v1/containers/{container}/files", **sent)

    assert_refused(answer, status, code)
    assert param in (None, answer.json()["error"]["param"])
    assert files_of(http, container) == {}


def test_a_file_is_not_uploaded_to_an_unknown_container(http: httpx.Client) -> None:
    assert http.post(f"/v1/containers/cntr_{'0' * 32}/files", files={"file": ("x", b"x")}).status_code == 404


def test_unknown_files_and_containers_are_refused_before_the_model_runs(http: httpx.Client) -> None:
    missing = {"type": "code_interpreter", "container": f"cntr_{'0' * 32}"}
    wrong = {"type": "code_interpreter", "container": {"type": "auto", "file_ids": [f"file-{'0' * 32}"]}}

    error = assert_refused(post(http, "Hello", tools=[missing]), 404, "container_not_found")
    assert error["param"] == "tools[0].container"
    for container in ("../x", "cntr_" + "0" * 31 + "/", "x" * 200):
        assert post(http, "Hello", tools=[missing | {"container": container}]).status_code == 404
    error = assert_refused(post(http, "Hello", tools=[wrong]), 400, "invalid_request")
    assert error["param"] == "tools[0].container.file_ids"


def test_files_that_do_not_fit_are_refused(http: httpx.Client) -> None:
    large, hidden = upload(http, "a", b"x" * 3_500_001), upload(http, ".a", b"x")

    assert_refused(http.post("/v1/containers", json={"name": "c", "file_ids": [large]}), 400, "container_full")
    assert_refused(http.post("/v1/containers", json={"name": "c", "file_ids": [hidden]}), 400, "invalid_request")
    assert http.post("/v1/containers", json={"name": "c", "file_ids": [large] * 21}).status_code == 400
    assert http.post("/v1/containers", json={"name": "c", "memory_limit": "64g"}).status_code == 400


@pytest.mark.usefixtures("scripted")
def test_a_container_has_at_most_20_files(http: httpx.Client) -> None:
    container = http.post("/v1/containers", json={"name": "c"}).json()["id"]
    tool = {"type": "code_interpreter", "container": container}

    response = respond(http, plan(write={f"{n:02}": "" for n in range(25)}), tools=[tool])

    assert len(files_of(http, container)) == 20
    assert "Not kept, because they are no plain files, too many or too large: 20, 21, 22, 23, 24." in text_of(response)


@pytest.mark.usefixtures("scripted")
def test_a_container_that_was_deleted_is_an_answer_to_the_model(http: httpx.Client, app_fixture: AppFixture) -> None:
    container = http.post("/v1/containers", json={"name": "c"}).json()["id"]
    request = {"tools": [{"type": "code_interpreter", "container": container}], "background": True}
    response = respond(http, plan(), **request)
    http.delete(f"/v1/containers/{container}")

    app_fixture.work_off()

    ended = get(http, response["id"])
    assert ended["status"] == "failed"
    assert container in ended["error"]["message"]


def test_containers_are_listed_by_name_and_created_once_per_key(http: httpx.Client) -> None:
    made = [http.post("/v1/containers", json={"name": name}).json() for name in ("a", "b", "a")]
    headers = {"idempotency-key": "one"}
    repeated = [http.post("/v1/containers", json={"name": "k"}, headers=headers).json() for _ in range(2)]

    assert repeated[0] == repeated[1]
    listed = http.get("/v1/containers", params={"name": "a"}).json()["data"]
    assert [each["id"] for each in listed] == [made[2]["id"], made[0]["id"]]
    after = http.get("/v1/containers", params={"after": made[1]["id"], "order": "asc"}).json()["data"]
    assert [each["name"] for each in after] == ["a", "k"]


@pytest.mark.usefixtures("scripted")
def test_a_named_container_belongs_to_the_end_users_of_its_responses(http: httpx.Client) -> None:
    container = http.post("/v1/containers", json={"name": "shared"}).json()["id"]
    tool = {"type": "code_interpreter", "container": container}
    respond(http, plan(write={"a": "of ann"}), tools=[tool], user="ann")
    respond(http, plan(write={"b": "of bob"}), tools=[tool], safety_identifier="bob")

    owned = [http.get(f"/v1/admin/users/{user}").json()["data"] for user in ("ann", "bob")]
    receipt = http.delete("/v1/admin/users/ann").json()

    assert [{"kind": "container", "id": container} in each for each in owned] == [True, True]
    assert receipt["deleted"] == {"response": 1, "container": 1}
    assert http.get(f"/v1/containers/{container}").status_code == 404


@pytest.mark.usefixtures("scripted")
def test_the_container_of_a_response_belongs_to_its_end_user(http: httpx.Client) -> None:
    counted = http.post(f"{RESPONSES}/input_tokens", json={"input": "Hello", "tools": [AUTO], "user": "ann"})
    response = respond(http, plan(write={"a": "a"}), tools=[AUTO], user="ann")
    container = item_of(response, "code_interpreter_call")["container_id"]

    kinds_of_ann = [each["kind"] for each in http.get("/v1/admin/users/ann").json()["data"]]
    receipt = http.delete("/v1/admin/users/ann").json()

    assert (counted.status_code, kinds_of_ann) == (200, ["container", "response"])
    assert (receipt["complete"], receipt["deleted"]) == (True, {"container": 1, "response": 1})
    assert http.get(f"/v1/containers/{container}").status_code == 404


def test_a_container_of_an_earlier_response_is_reused(http: httpx.Client, scripted: None) -> None:
    table = upload(http, "late.csv", b"1,2")
    late = {"type": "code_interpreter", "container": {"type": "auto", "file_ids": [table]}}
    conversation = http.post("/v1/conversations", json={}).json()["id"]

    first = respond(http, plan(write={"a.txt": "a"}), tools=[AUTO], conversation=conversation)
    between = respond(http, "say: hi", previous_response_id=first["id"])
    chained = respond(http, plan(), tools=[late], include=[OUTPUTS], previous_response_id=between["id"])
    again = respond(http, plan(), tools=[AUTO], include=[OUTPUTS], conversation=conversation)
    item = {**item_of(first, "code_interpreter_call"), "outputs": None}
    stateless = respond(http, [item, {"role": "user", "content": plan()}], tools=[AUTO], include=[OUTPUTS], store=False)

    container = item["container_id"]
    runs = [item_of(each, "code_interpreter_call") for each in (chained, again, stateless)]
    assert [each["container_id"] for each in runs] == [container] * 3
    assert {each["outputs"][0]["logs"] for each in runs} == {"a.txt late.csv"}
    assert chained["tools"][0]["container"] == late["container"]


def test_a_container_that_is_gone_or_unknown_is_not_reused(http: httpx.Client, scripted: None) -> None:
    first = respond(http, plan(write={"a.txt": "a"}), tools=[AUTO])
    container = item_of(first, "code_interpreter_call")["container_id"]
    http.delete(f"/v1/containers/{container}").raise_for_status()
    foreign = {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "container_id": f"cntr_{'1' * 32}"}

    second = respond(http, plan(write={"b.txt": "b"}), tools=[AUTO], previous_response_id=first["id"])
    third = respond(http, [foreign, {"role": "user", "content": plan()}], tools=[AUTO])

    made = item_of(second, "code_interpreter_call")["container_id"]
    assert made != container
    assert files_of(http, made) == {"b.txt": "b"}
    assert item_of(third, "code_interpreter_call")["container_id"] != foreign["container_id"]


def file_part(name: str, content: bytes) -> dict[str, Any]:
    data = f"data:application/octet-stream;base64,{base64.b64encode(content).decode()}"
    return {"type": "input_file", "filename": name, "file_data": data}


@pytest.mark.parametrize("background", [False, True])
def test_input_files_are_in_the_container(
    http: httpx.Client, app_fixture: AppFixture, scripted: None, *, background: bool
) -> None:
    stored = upload(http, "table.xlsx", b"PK\x03\x04")
    parts = [
        file_part("../no tes.txt", b"text"),
        {"type": "input_file", "file_id": stored},
        file_part("b.bin", b"\xff"),
    ]
    message = {"role": "user", "content": [{"type": "input_text", "text": plan()}, *parts]}
    request: Any = {"said": [message], "tools": [AUTO], "include": [OUTPUTS], "model": "recorded/demo"}

    with app_fixture.working() if background else nullcontext():
        response = follow(http, background=background, **request)[-1]["response"]

    run = item_of(response, "code_interpreter_call")
    assert run["outputs"][0]["logs"] == "b.bin no tes.txt table.xlsx"
    assert set(files_of(http, run["container_id"])) == {"b.bin", "no tes.txt", "table.xlsx"}
    said = str(app_fixture.recorder.requests[0].messages)
    assert 'has this file as "no tes.txt".' in said
    assert 'has this file as "table.xlsx". Its text is not shown.' in said


def test_the_container_of_another_tenant_is_not_reused(
    http: httpx.Client, app_fixture: AppFixture, scripted: None
) -> None:
    foreign = item_of(respond(http, plan(write={"a.txt": "secret"}), tools=[AUTO]), "code_interpreter_call")
    before, app_fixture.tenant = app_fixture.tenant, f"other{new_id()[-12:]}"

    try:
        response = respond(http, [foreign, {"role": "user", "content": plan()}], tools=[AUTO], include=[OUTPUTS])
    finally:
        app_fixture.tenant = before

    assert item_of(response, "code_interpreter_call")["container_id"] != foreign["container_id"]
    assert "a.txt" not in str(response["output"])


def test_input_files_go_into_a_named_container_that_has_a_place_for_them(http: httpx.Client, scripted: None) -> None:
    container = http.post("/v1/containers", json={"name": "c"}).json()["id"]
    tools = [{"type": "code_interpreter", "container": container}]

    def ask(part: dict[str, Any]) -> httpx.Response:
        content = [{"type": "input_text", "text": plan()}, part]
        return post(http, [{"role": "user", "content": content}], tools=tools, include=[OUTPUTS])

    ran = ask(file_part("a.bin", b"\xff" * 2_000_000)).json()
    refused = ask(file_part("b.bin", b"\xff" * 2_000_000))
    again = ask(file_part("a.bin", b"\xfe"))

    assert item_of(ran, "code_interpreter_call")["container_id"] == container
    assert item_of(ran, "code_interpreter_call")["outputs"][0]["logs"] == "a.bin"
    assert_refused(refused, 400, "container_full")
    assert again.json()["status"] == "completed"
    assert [each["bytes"] for each in http.get(f"/v1/containers/{container}/files").json()["data"]] == [1]
