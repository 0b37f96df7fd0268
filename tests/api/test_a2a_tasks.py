"""Tasks of A2A: send, stream, read, list, cancel, subscribe, and answer, as plain JSON-RPC."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.api.a2a_client import (
    CALL,
    TIME,
    Body,
    calls_of,
    error_of,
    message,
    result_of,
    rpc,
    send,
    state_of,
    stream_items,
    text_message,
    text_of,
)
from tests.api.api_client import create_agent, create_session, turn
from tests.api.app_fixture import AppFixture, wait_until

from stint.a2a import task_lists

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_a_message_creates_a_context_and_a_task(http: httpx.Client) -> None:
    agent = create_agent(http)

    task = send(http, agent, "say: Hello")

    assert (state_of(task), text_of(task)) == ("COMPLETED", "Hello")
    assert task["history"][0]["parts"] == [{"text": "say: Hello"}]
    assert task["status"]["timestamp"].endswith("Z")
    assert task["metadata"]["stint/usage"]["output_tokens"] > 0
    stored = http.get(f"/v1/agents/{agent}/session/{task['contextId']}/turn/{task['metadata']['stint/turn_id']}")
    assert stored.json()["output_message"]["content"] == "Hello"


def test_a_context_goes_on(http: httpx.Client) -> None:
    agent = create_agent(http)
    first = send(http, agent, "say: One")

    second = send(http, agent, text_message("say: Two", contextId=first["contextId"]))

    assert second["contextId"] == first["contextId"]
    assert second["id"] != first["id"]
    assert len(http.get(f"/v1/agents/{agent}/session/{first['contextId']}").json()["turns"]) == 2


def test_a_session_of_another_api_is_a_context(http: httpx.Client) -> None:
    agent = create_agent(http)
    session = create_session(http, agent)
    done = turn(http, session, "say: Before")

    task = send(http, agent, text_message("say: After", contextId=session.rpartition("/")[2]))
    listed = result_of(rpc(http, agent, "ListTasks", {"contextId": task["contextId"], "includeArtifacts": True}))

    assert [text_of(each) for each in listed["tasks"]] == ["After", "Before"]
    assert listed["tasks"][1]["metadata"]["stint/turn_id"] == done["turn_id"]
    assert text_of(result_of(rpc(http, agent, "GetTask", {"id": listed["tasks"][1]["id"]}))) == "Before"


@pytest.mark.parametrize("context", ["unknown", "0199aaaa-0000-7000-8000-000000000000", "a" * 512])
def test_an_unknown_context_is_an_error(http: httpx.Client, context: str) -> None:
    agent = create_agent(http)

    answer = rpc(http, agent, "SendMessage", {"message": text_message("Hi", contextId=context)})

    error = error_of(answer, -32602, "INVALID_PARAMS")
    assert error["data"][1]["fieldViolations"][0]["field"] == "message.contextId"
    assert http.get(f"/v1/agents/{agent}/sessions").json()["data"] == []


def test_the_context_of_another_agent_is_unknown(http: httpx.Client) -> None:
    task = send(http, create_agent(http), "Hi")
    other = create_agent(http)

    for method, params in (
        ("SendMessage", {"message": text_message("Hi", contextId=task["contextId"])}),
        ("ListTasks", {"contextId": task["contextId"]}),
    ):
        error_of(rpc(http, other, method, params), -32602, "INVALID_PARAMS")
    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        error_of(rpc(http, other, method, {"id": task["id"]}), -32001, "TASK_NOT_FOUND")


def test_tasks_of_other_end_users_are_not_found(http: httpx.Client) -> None:
    agent = create_agent(http)
    params: Body = {"message": text_message("Hi")}
    task = result_of(rpc(http, agent, "SendMessage", params, x_stint_user="ann"))["task"]

    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        error_of(rpc(http, agent, method, {"id": task["id"]}, x_stint_user="bob"), -32001, "TASK_NOT_FOUND")
    sent = {"message": text_message("Hi", contextId=task["contextId"])}
    error_of(rpc(http, agent, "SendMessage", sent, x_stint_user="bob"), -32602, "INVALID_PARAMS")
    assert result_of(rpc(http, agent, "ListTasks", {}, x_stint_user="bob"))["tasks"] == []
    assert len(result_of(rpc(http, agent, "ListTasks", {}, x_stint_user="ann"))["tasks"]) == 1


def test_a_stream_has_the_task_and_then_its_pieces(http: httpx.Client) -> None:
    agent = create_agent(http)

    items = stream_items(rpc(http, agent, "SendStreamingMessage", {"message": text_message("say: One two three")}))

    assert state_of(items[0]["task"]) == "WORKING"
    pieces = [item["artifactUpdate"] for item in items if "artifactUpdate" in item]
    assert "".join(piece["artifact"]["parts"][0]["text"] for piece in pieces) == "One two three"
    assert [piece["append"] for piece in pieces] == [False] + [True] * (len(pieces) - 1)
    assert [piece["lastChunk"] for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert state_of(items[-1]["statusUpdate"]) == "COMPLETED"
    stored = result_of(rpc(http, agent, "GetTask", {"id": items[0]["task"]["id"]}))
    assert stored["artifacts"][0]["artifactId"] == pieces[0]["artifact"]["artifactId"]
    assert stored["artifacts"][0]["metadata"] == pieces[-1]["artifact"]["metadata"]


def test_a_generated_image_is_an_artifact(http: httpx.Client) -> None:
    agent = create_agent(http, toolgroups=["builtin::photogen"])
    sent = {"message": text_message('call: photogen {"query": "a red fox"}')}

    items = stream_items(rpc(http, agent, "SendStreamingMessage", sent))

    [streamed] = [
        item["artifactUpdate"]["artifact"]
        for item in items
        if item.get("artifactUpdate", {}).get("artifact", {}).get("name") == "file"
    ]
    assert base64.b64decode(streamed["parts"][0]["raw"]).startswith(b"\x89PNG")
    stored = result_of(rpc(http, agent, "GetTask", {"id": items[0]["task"]["id"]}))
    assert streamed in stored["artifacts"]


def test_a_failed_task_says_why(http: httpx.Client) -> None:
    agent = create_agent(http)

    task = send(http, agent, "fail: before")
    items = stream_items(rpc(http, agent, "SendStreamingMessage", {"message": text_message("fail: after 2 words")}))

    assert state_of(task) == "FAILED"
    assert task["status"]["message"]["parts"][0]["text"]
    assert task["metadata"]["stint/error"]["code"] == "model_error"
    assert state_of(items[-1]["statusUpdate"]) == "FAILED"


def test_a_task_that_fails_at_once_is_streamed(http: httpx.Client) -> None:
    agent = create_agent(http)

    items = stream_items(rpc(http, agent, "SendStreamingMessage", {"message": text_message("fail: before")}))

    assert "task" in items[0]
    last = items[-1].get("statusUpdate") or items[-1]["task"]
    assert state_of(last) == "FAILED"


def test_the_history_is_as_long_as_asked(http: httpx.Client) -> None:
    agent = create_agent(http)

    none = send(http, agent, "Hi", historyLength=0)

    assert "history" not in none
    one = result_of(rpc(http, agent, "GetTask", {"id": none["id"], "historyLength": 1}))
    assert len(one["history"]) == 1
    assert len(result_of(rpc(http, agent, "GetTask", {"id": none["id"]}))["history"]) == 1


@pytest.mark.parametrize("form", ["data", "text", "snake"])
def test_a_task_takes_the_result_that_it_waits_for(http: httpx.Client, form: str) -> None:
    agent = create_agent(http, client_tools=[TIME])
    waiting = send(http, agent, CALL)
    [call] = calls_of(waiting)
    parts: dict[str, list[Body]] = {
        "data": [{"data": {"callId": call["callId"], "result": "noon"}}],
        "text": [{"text": "noon"}],
        "snake": [{"data": {"call_id": call["callId"], "result": "noon"}}],
    }

    done = send(http, agent, message(parts[form], taskId=waiting["id"]))

    assert state_of(waiting) == "INPUT_REQUIRED"
    assert call == {"kind": "tool_call", "callId": call["callId"], "toolName": "get_time", "arguments": {}}
    assert (done["id"], done["contextId"], state_of(done)) == (waiting["id"], waiting["contextId"], "COMPLETED")
    assert "noon" in text_of(done)


def test_a_resumed_task_is_streamed(http: httpx.Client) -> None:
    agent = create_agent(http, client_tools=[TIME])
    items = stream_items(rpc(http, agent, "SendStreamingMessage", {"message": text_message(CALL)}))
    asked = items[-1]["statusUpdate"]

    answer = message([{"text": "noon"}], taskId=asked["taskId"], contextId=asked["contextId"])
    rest = stream_items(rpc(http, agent, "SendStreamingMessage", {"message": answer}))

    assert state_of(asked) == "INPUT_REQUIRED"
    assert calls_of(asked)[0]["toolName"] == "get_time"
    assert (rest[0]["task"]["id"], state_of(rest[0]["task"])) == (asked["taskId"], "WORKING")
    assert state_of(rest[-1]["statusUpdate"]) == "COMPLETED"


@pytest.mark.parametrize("approve", [True, False])
def test_a_task_waits_for_an_approval(http: httpx.Client, *, approve: bool) -> None:
    asking = {"name": "builtin::photogen", "require_approval": "always"}
    agent = create_agent(http, toolgroups=[asking])
    waiting = send(http, agent, 'call: photogen {"query": "a red fox"}')
    [asked] = calls_of(waiting)

    refused = rpc(http, agent, "SendMessage", {"message": message([{"text": "yes"}], taskId=waiting["id"])})
    decision = {"callId": asked["callId"], "approve": approve, "reason": "Because."}
    done = send(http, agent, message([{"data": decision}], taskId=waiting["id"]))

    assert (asked["kind"], asked["toolName"]) == ("approval_request", "photogen")
    error_of(refused, -32602, "INVALID_PARAMS")
    assert state_of(done) == "COMPLETED"
    assert any(artifact["name"] == "file" for artifact in done["artifacts"]) is approve


@pytest.mark.parametrize(
    "parts",
    [
        [{"data": {"callId": "unknown", "result": "x"}}],
        [{"data": {"result": "x"}}],
        [{"data": "x"}],
        [{"data": ["x"]}],
        [{"data": {"callId": "ID", "result": "x", "error": "y"}}],
        [{"data": {"callId": "ID"}}],
        [{"data": {"callId": "ID", "approve": "yes"}}],
        [{"data": {"callId": "ID", "approve": True}}],
        [{"data": {"callId": "ID", "result": "x"}}, {"text": "and this"}],
        [{"raw": "eA==", "mediaType": "text/plain"}],
    ],
)
def test_a_wrong_answer_changes_nothing(http: httpx.Client, parts: list[Body]) -> None:
    agent = create_agent(http, client_tools=[TIME])
    waiting = send(http, agent, CALL)
    sent = json.loads(json.dumps(parts).replace("ID", calls_of(waiting)[0]["callId"]))

    answer = rpc(http, agent, "SendMessage", {"message": message(sent, taskId=waiting["id"])})

    error_of(answer, -32602, "INVALID_PARAMS")
    assert state_of(result_of(rpc(http, agent, "GetTask", {"id": waiting["id"]}))) == "INPUT_REQUIRED"


def test_an_ended_task_takes_no_message(http: httpx.Client) -> None:
    agent = create_agent(http)
    task = send(http, agent, "Hi")

    for method in ("SendMessage", "SendStreamingMessage"):
        sent = {"message": text_message("More", taskId=task["id"])}
        error_of(rpc(http, agent, method, sent), -32004, "UNSUPPORTED_OPERATION")


def test_a_message_with_the_context_of_another_task_is_refused(http: httpx.Client) -> None:
    agent = create_agent(http, client_tools=[TIME])
    waiting, other = send(http, agent, CALL), send(http, agent, "Hi")

    sent = text_message("noon", taskId=waiting["id"], contextId=other["contextId"])

    error_of(rpc(http, agent, "SendMessage", {"message": sent}), -32602, "INVALID_PARAMS")


def test_a_waiting_task_is_cancelled_once(http: httpx.Client) -> None:
    agent = create_agent(http, client_tools=[TIME])
    waiting = send(http, agent, CALL)

    cancelled = result_of(rpc(http, agent, "CancelTask", {"id": waiting["id"]}))

    assert state_of(cancelled) == "CANCELED"
    error_of(rpc(http, agent, "CancelTask", {"id": waiting["id"]}), -32002, "TASK_NOT_CANCELABLE")
    error_of(rpc(http, agent, "SubscribeToTask", {"id": waiting["id"]}), -32004, "UNSUPPORTED_OPERATION")


def test_a_subscription_of_a_waiting_task_has_its_state(http: httpx.Client) -> None:
    agent = create_agent(http, client_tools=[TIME])
    waiting = send(http, agent, CALL)

    [item] = stream_items(rpc(http, agent, "SubscribeToTask", {"id": waiting["id"]}))

    assert item["task"] == waiting


def test_a_task_that_returns_immediately_is_run_by_the_worker(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http)

    task = send(http, agent, "say: Later", returnImmediately=True)
    listed = result_of(rpc(http, agent, "ListTasks", {"contextId": task["contextId"]}))["tasks"]
    app_fixture.run_waiting()
    done = result_of(rpc(http, agent, "GetTask", {"id": task["id"]}))

    assert state_of(task) == "SUBMITTED"
    assert [(each["id"], state_of(each)) for each in listed] == [(task["id"], "SUBMITTED")]
    assert (done["id"], state_of(done), text_of(done)) == (task["id"], "COMPLETED", "Later")


def test_a_submitted_task_is_cancelled(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http)
    task = send(http, agent, "say: Never", returnImmediately=True)

    assert state_of(result_of(rpc(http, agent, "CancelTask", {"id": task["id"]}))) == "CANCELED"
    app_fixture.run_waiting()
    assert state_of(result_of(rpc(http, agent, "GetTask", {"id": task["id"]}))) == "CANCELED"


def test_an_answer_that_returns_immediately_is_taken_by_the_worker(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http, client_tools=[TIME])
    waiting = send(http, agent, CALL)

    send(http, agent, text_message("noon", taskId=waiting["id"]), returnImmediately=True)
    app_fixture.run_waiting()

    assert state_of(result_of(rpc(http, agent, "GetTask", {"id": waiting["id"]}))) == "COMPLETED"


def list_pages(http: httpx.Client, agent: str, **params: Any) -> list[Body]:
    """Return the pages of a list."""
    pages: list[Body] = []
    token = ""
    while not pages or token:
        assert len(pages) < 50
        pages.append(result_of(rpc(http, agent, "ListTasks", params | {"pageToken": token})))
        token = pages[-1]["nextPageToken"]
    return pages


def ids_of(pages: list[Body]) -> list[str]:
    return [task["id"] for page in pages for task in page["tasks"]]


def test_a_list_is_read_in_pages(http: httpx.Client) -> None:
    agent = create_agent(http)
    first = send(http, agent, "say: 0")
    ids = [first["id"]]
    ids += [send(http, agent, text_message(f"say: {n}", contextId=first["contextId"]))["id"] for n in (1, 2)]
    ids += [send(http, agent, "say: other")["id"]]

    for size in (1, 2, 3, 4):
        for context, wanted in (("", ids[::-1]), (first["contextId"], ids[2::-1])):
            pages = list_pages(http, agent, contextId=context, pageSize=size)
            assert ids_of(pages) == wanted
            assert pages[-1]["totalSize"] == len(wanted)


def test_messages_that_wait_are_in_a_list_once(http: httpx.Client) -> None:
    agent = create_agent(http, when_busy="enqueue")
    first = send(http, agent, "Hi")
    sent = [text_message(f"say: {number}", contextId=first["contextId"]) for number in range(3)]
    waiting = [send(http, agent, each, returnImmediately=True)["id"] for each in sent]

    for size in (1, 2, 3, 50):
        assert ids_of(list_pages(http, agent, pageSize=size)) == [*waiting[::-1], first["id"]]


def test_sessions_without_tasks_are_passed_over(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_lists, "MOST_COST", 20)
    agent = create_agent(http)
    oldest = send(http, agent, "Hi")["id"]
    for _ in range(25):
        create_session(http, agent)
    newest = send(http, agent, "Hi")["id"]

    pages = list_pages(http, agent)

    assert ids_of(pages) == [newest, oldest]
    assert len(pages) > 3


def test_a_list_is_filtered(http: httpx.Client) -> None:
    agent = create_agent(http, client_tools=[TIME])
    done, waiting = send(http, agent, "Hi"), send(http, agent, CALL)

    def ids(**params: Any) -> list[str]:
        page = result_of(rpc(http, agent, "ListTasks", params))
        assert all("artifacts" not in task for task in page["tasks"])
        return [task["id"] for task in page["tasks"]]

    assert ids() == [waiting["id"], done["id"]]
    assert ids(status="TASK_STATE_INPUT_REQUIRED") == [waiting["id"]]
    assert ids(status="TASK_STATE_COMPLETED") == [done["id"]]
    assert ids(status="TASK_STATE_REJECTED") == []
    assert ids(statusTimestampAfter=waiting["status"]["timestamp"]) == [waiting["id"]]
    assert ids(statusTimestampAfter="2100-01-01T00:00:00Z") == []


@pytest.mark.parametrize(
    "part",
    [
        {"raw": PIXEL, "mediaType": "image/png"},
        {"url": f"data:image/png;base64,{PIXEL}", "mediaType": "image/png"},
        {"raw": base64.urlsafe_b64encode(b"A note?>").decode(), "mediaType": "text/plain", "filename": "note.txt"},
        {"raw": "QSBub3Rl", "filename": "note.md"},
        {"url": "data:text/plain,note", "mediaType": "text/plain"},
        {"data": {"a": [1, None]}},
    ],
)
def test_files_and_data_are_input(http: httpx.Client, part: Body) -> None:
    agent = create_agent(http)

    task = send(http, agent, message([{"text": "say: Seen"}, part]))

    assert (state_of(task), text_of(task)) == ("COMPLETED", "Seen")


@pytest.mark.parametrize(
    "part",
    [
        {"raw": "dGNr", "mediaType": "application/x-unsupported"},
        {"raw": "dGNr"},
        {"raw": "dGNr", "mediaType": "video/mp4"},
        {"raw": "dGNr", "mediaType": "image/svg+xml"},
    ],
)
def test_media_types_that_no_agent_reads_are_refused(http: httpx.Client, part: Body) -> None:
    answer = rpc(http, create_agent(http), "SendMessage", {"message": message([part])})

    error_of(answer, -32005, "CONTENT_TYPE_NOT_SUPPORTED")


def test_a_caller_who_accepts_no_output_is_refused(http: httpx.Client) -> None:
    agent = create_agent(http)
    sent = {"message": text_message("Hi")}

    refused = rpc(http, agent, "SendMessage", sent | {"configuration": {"acceptedOutputModes": ["video/mp4"]}})

    error_of(refused, -32005, "CONTENT_TYPE_NOT_SUPPORTED")
    for mode in ("text/*", "text", "TEXT/PLAIN; charset=utf-8", "*/*"):
        send(http, agent, "Hi", acceptedOutputModes=["video/mp4", mode])


def test_a_new_context_may_have_a_budget(http: httpx.Client) -> None:
    agent = create_agent(http)
    budget = {"stint/budget": {"max_tokens": 100_000.0}}

    task = send(http, agent, "Hi", metadata=budget)
    again = {"message": text_message("Hi", contextId=task["contextId"]), "metadata": budget}

    session = http.get(f"/v1/agents/{agent}/session/{task['contextId']}").json()
    assert session["budget"]["max_tokens"] == 100_000
    error_of(rpc(http, agent, "SendMessage", again), -32602, "INVALID_PARAMS")
    wrong = {"message": text_message("Hi"), "metadata": {"stint/budget": {"max_tokens": -1}}}
    error_of(rpc(http, agent, "SendMessage", wrong), -32602, "INVALID_PARAMS")


@pytest.mark.parametrize("depth", [6, 6.0, "6"])
def test_a_message_that_is_too_deep_is_refused(http: httpx.Client, depth: object) -> None:
    agent = create_agent(http)
    metadata = {"stint/call-depth": depth}

    of_request = rpc(http, agent, "SendMessage", {"message": text_message("Hi"), "metadata": metadata})
    of_message = rpc(http, agent, "SendStreamingMessage", {"message": text_message("Hi", metadata=metadata)})
    by_header = rpc(http, agent, "SendMessage", {"message": text_message("Hi")}, stint_call_depth="6")

    for answer in (of_request, of_message, by_header):
        assert "call 6 in a row" in answer.json()["error"]["message"]
    send(http, agent, "Hi", metadata={"stint/call-depth": 5})
    wrong = rpc(http, agent, "SendMessage", {"message": text_message("Hi"), "metadata": {"stint/call-depth": "deep"}})
    error_of(wrong, -32602, "INVALID_PARAMS")


def test_a_message_that_a_shield_blocks_is_rejected(http: httpx.Client) -> None:
    shield = {"shield_id": "a2a-words", "provider_id": "deny-list", "params": {"phrases": ["marmalade"]}}
    registered = http.post("/v1/shields", json=shield)
    assert registered.status_code == 200, registered.text
    agent = create_agent(http, input_shields=["a2a-words"])

    task = send(http, agent, "say: marmalade")

    assert state_of(task) == "REJECTED"
    assert task["status"]["message"]["parts"][0]["text"]
    assert [each["id"] for each in result_of(rpc(http, agent, "ListTasks", {"status": "TASK_STATE_REJECTED"}))["tasks"]]


@pytest.mark.parametrize(("when_busy", "immediately"), [(None, False), (None, True), ("enqueue", False)])
def test_a_busy_context_does_as_the_agent_says(http: httpx.Client, *, when_busy: str | None, immediately: bool) -> None:
    agent = create_agent(http, **({"when_busy": when_busy} if when_busy else {}))
    first = send(http, agent, "Hi")

    def run(text: str, **configuration: Any) -> httpx.Response:
        sent = text_message(text, contextId=first["contextId"])
        return rpc(http, agent, "SendMessage", {"message": sent, "configuration": configuration})

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, "slow: 0.1\nsay: One two three four five six seven eight nine ten")
        path = f"/v1/agents/{agent}/session/{first['contextId']}"
        wait_until(lambda: any(each["status"] == "in_progress" for each in http.get(path).json()["turns"]))
        answer = run("say: Next", returnImmediately=immediately)

    if when_busy is None:
        error = answer.json()["error"]
        assert (error["code"], error["data"][0]["metadata"]["code"]) == (-32012, "session_locked")
    else:
        assert text_of(result_of(answer)["task"]) == "Next"
    assert state_of(result_of(running.result())["task"]) == "COMPLETED"


def test_a_message_for_the_worker_interrupts_the_running_task(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http, when_busy="interrupt")
    first = send(http, agent, "Hi")
    sent = text_message("slow: 20\nsay: One two three", contextId=first["contextId"])

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(rpc, http, agent, "SendMessage", {"message": sent})
        params = {"status": "TASK_STATE_WORKING", "contextId": first["contextId"]}
        wait_until(lambda: bool(result_of(rpc(http, agent, "ListTasks", params))["tasks"]))
        later = send(http, agent, text_message("say: Next", contextId=first["contextId"]), returnImmediately=True)
        interrupted = result_of(running.result())["task"]
    app_fixture.run_waiting()

    assert state_of(interrupted) == "CANCELED"
    assert text_of(result_of(rpc(http, agent, "GetTask", {"id": later["id"]}))) == "Next"


def test_a_running_task_takes_no_message_and_is_cancelled(http: httpx.Client) -> None:
    agent = create_agent(http)
    first = send(http, agent, "Hi")
    sent = text_message("slow: 20\nsay: One two three", contextId=first["contextId"])

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(rpc, http, agent, "SendStreamingMessage", {"message": sent})
        params = {"status": "TASK_STATE_WORKING", "contextId": first["contextId"]}
        wait_until(lambda: bool(result_of(rpc(http, agent, "ListTasks", params))["tasks"]))
        [task] = result_of(rpc(http, agent, "ListTasks", params))["tasks"]
        refused = rpc(http, agent, "SendMessage", {"message": text_message("More", taskId=task["id"])})
        cancelled = result_of(rpc(http, agent, "CancelTask", {"id": task["id"]}))

    error_of(refused, -32004, "UNSUPPORTED_OPERATION")
    assert state_of(cancelled) == "CANCELED"
    assert state_of(stream_items(running.result())[-1]["statusUpdate"]) == "CANCELED"


def test_a_subscription_follows_a_running_task(http: httpx.Client) -> None:
    agent = create_agent(http)
    first = send(http, agent, "Hi")
    sent = text_message("slow: 1\nsay: One two three", contextId=first["contextId"])

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(rpc, http, agent, "SendStreamingMessage", {"message": sent})
        params = {"status": "TASK_STATE_WORKING", "contextId": first["contextId"]}
        wait_until(lambda: bool(result_of(rpc(http, agent, "ListTasks", params))["tasks"]))
        [task] = result_of(rpc(http, agent, "ListTasks", params))["tasks"]
        followed = stream_items(rpc(http, agent, "SubscribeToTask", {"id": task["id"]}))

    streamed = stream_items(running.result())
    assert (followed[0]["task"]["id"], state_of(followed[0]["task"])) == (task["id"], "WORKING")
    assert followed[-1] == streamed[-1]
    for items in (followed, streamed):
        pieces = [item["artifactUpdate"]["artifact"]["parts"][0]["text"] for item in items if "artifactUpdate" in item]
        assert "".join(pieces) == "One two three"
