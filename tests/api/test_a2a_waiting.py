"""Tasks that wait in the line of their context, and answers that wait for the worker."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from tests.api.a2a_client import (
    CALL,
    TIME,
    VERSION,
    Body,
    result_of,
    rpc,
    send,
    state_of,
    text_message,
    text_of,
)
from tests.api.api_client import create_agent
from tests.api.app_fixture import AppFixture, Served, wait_until


@contextmanager
def busy_context(http: httpx.Client, agent: str) -> Iterator[tuple[str, Callable[[], Body]]]:
    """Yield a context with a running task, and what cancels this."""
    context = send(http, agent, "Hi")["contextId"]
    sent = text_message("slow: 20\nsay: One two three", contextId=context)
    params = {"status": "TASK_STATE_WORKING", "contextId": context}
    with ThreadPoolExecutor(1) as pool:
        running: Future[httpx.Response] = pool.submit(rpc, http, agent, "SendMessage", {"message": sent})
        wait_until(lambda: bool(result_of(rpc(http, agent, "ListTasks", params))["tasks"]))
        [task] = result_of(rpc(http, agent, "ListTasks", params))["tasks"]
        yield context, lambda: result_of(rpc(http, agent, "CancelTask", {"id": task["id"]}))
        running.result()


def read_items(server: Served, agent: str, method: str, params: Body, then: Callable[[], object]) -> list[Body]:
    """Return the items of a stream. `then` is called once the first one has arrived."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    url, items = f"{server.url}/v1/agents/{agent}/a2a", []
    with (
        httpx.Client(trust_env=False, timeout=120) as client,
        client.stream("POST", url, json=body, headers=VERSION) as answer,
    ):
        for line in answer.iter_lines():
            if line.startswith("data: "):
                items.append(json.loads(line[6:])["result"])
                if len(items) == 1:
                    then()
    return items


def check_items(items: list[Body], text: str) -> None:
    first, second = items[0]["task"], items[1]["statusUpdate"]
    assert (state_of(first), state_of(second)) == ("SUBMITTED", "WORKING")
    assert {each[name][key] for each in items[1:] for name in each for key in ("taskId",)} == {first["id"]}
    assert state_of(items[-1]["statusUpdate"]) == "COMPLETED"
    assert [state_of(each["statusUpdate"]) for each in items if "statusUpdate" in each] == ["WORKING", "COMPLETED"]
    pieces = [item["artifactUpdate"]["artifact"]["parts"][0]["text"] for item in items if "artifactUpdate" in item]
    assert "".join(pieces) == text


def test_a_stream_of_a_message_in_line_begins_at_once(http: httpx.Client, server: Served) -> None:
    agent = create_agent(http, when_busy="enqueue")

    with busy_context(http, agent) as (context, cancel):
        params = {"message": text_message("say: Next", contextId=context)}
        items = read_items(server, agent, "SendStreamingMessage", params, cancel)

    check_items(items, "Next")
    task = result_of(rpc(http, agent, "GetTask", {"id": items[0]["task"]["id"]}))
    assert (state_of(task), text_of(task)) == ("COMPLETED", "Next")


def test_a_subscription_of_a_task_in_line_begins_at_once(
    http: httpx.Client, server: Served, app_fixture: AppFixture
) -> None:
    agent = create_agent(http)
    task = send(http, agent, "say: Later", returnImmediately=True)
    workers: list[threading.Thread] = []

    def run_worker() -> None:
        workers.append(threading.Thread(target=app_fixture.run_waiting))
        workers[0].start()

    items = read_items(server, agent, "SubscribeToTask", {"id": task["id"]}, run_worker)
    workers[0].join()

    assert items[0]["task"] == task
    check_items(items, "Later")


def test_a_task_that_is_cancelled_in_line_ends_its_stream(http: httpx.Client, server: Served) -> None:
    agent = create_agent(http)
    task = send(http, agent, "say: Never", returnImmediately=True)

    def cancel() -> None:
        result_of(rpc(http, agent, "CancelTask", {"id": task["id"]}))

    items = read_items(server, agent, "SubscribeToTask", {"id": task["id"]}, cancel)

    assert [state_of(items[0]["task"]), state_of(items[1]["statusUpdate"])] == ["SUBMITTED", "CANCELED"]
    assert len(items) == 2


@pytest.mark.parametrize("answered", [1, 2])
def test_an_accepted_answer_is_shown_as_working(http: httpx.Client, app_fixture: AppFixture, answered: int) -> None:
    agent = create_agent(http, client_tools=[TIME])
    waiting = send(http, agent, f"{CALL}\n{CALL}")
    calls = [part["data"] for part in waiting["status"]["message"]["parts"] if "data" in part]
    parts: list[dict[str, Any]] = [{"data": {"callId": call["callId"], "result": "noon"}} for call in calls[:answered]]
    sent = text_message("", taskId=waiting["id"]) | {"parts": parts}

    shown = send(http, agent, sent, returnImmediately=True)
    found = result_of(rpc(http, agent, "GetTask", {"id": waiting["id"]}))
    app_fixture.run_waiting()

    assert len(calls) == 2
    assert state_of(shown) == state_of(found) == ("WORKING" if answered == 2 else "INPUT_REQUIRED")
    done = result_of(rpc(http, agent, "GetTask", {"id": waiting["id"]}))
    assert state_of(done) == ("COMPLETED" if answered == 2 else "INPUT_REQUIRED")
