"""Repeated calls of A2A: one effect for each Idempotency-Key, whatever the ids of JSON-RPC are."""

from concurrent.futures import ThreadPoolExecutor

import httpx
from tests.api.a2a_client import CALL, TIME, Body, calls_of, message, result_of, rpc, send, state_of, stream_items
from tests.api.a2a_client import text_message as said
from tests.api.api_client import create_agent
from tests.api.app_fixture import AppFixture


def call(http: httpx.Client, agent: str, method: str, params: Body, number: int | str, key: str = "") -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    headers = {"A2A-Version": "1.0"} | ({"Idempotency-Key": key} if key else {})
    return http.post(f"/v1/agents/{agent}/a2a", json=body, headers=headers)


def count_turns(http: httpx.Client, agent: str) -> int:
    return int(result_of(rpc(http, agent, "ListTasks", {}))["totalSize"])


def test_a_repeated_message_gets_its_task_under_the_new_id(http: httpx.Client) -> None:
    agent, params = create_agent(http), {"message": said("say: Once")}

    first, second = (call(http, agent, "SendMessage", params, number, "key-1") for number in (1, "two"))

    assert (first.json()["id"], second.json()["id"]) == (1, "two")
    assert first.json()["result"] == second.json()["result"]
    assert count_turns(http, agent) == 1


def test_equal_ids_of_two_clients_are_two_tasks(http: httpx.Client) -> None:
    agent, params = create_agent(http), {"message": said("say: Twice")}

    answers = [call(http, agent, "SendMessage", params, 1, key) for key in ("", "", "a", "b")]

    assert len({result_of(answer)["task"]["id"] for answer in answers}) == 4


def test_a_key_with_another_message_is_refused(http: httpx.Client) -> None:
    agent = create_agent(http)
    call(http, agent, "SendMessage", {"message": said("One")}, 1, "key-2")

    answer = call(http, agent, "SendMessage", {"message": said("Two")}, 1, "key-2")

    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "idempotency_key_reused")


def test_a_repeated_stream_is_replayed(http: httpx.Client) -> None:
    agent, params = create_agent(http), {"message": said("say: One two")}

    first, second = (call(http, agent, "SendStreamingMessage", params, number, "key-3") for number in (1, 2))

    [one, two] = [stream_items(first), stream_items(second)]
    for items in (one, two):
        items[0]["task"]["status"].pop("timestamp")
    assert one == two
    assert count_turns(http, agent) == 1


def test_concurrent_repetitions_run_one_turn(http: httpx.Client) -> None:
    agent, params = create_agent(http), {"message": said("slow: 0.05\nsay: One two three four five six")}

    with ThreadPoolExecutor(4) as pool:
        answers = [*pool.map(lambda number: call(http, agent, "SendMessage", params, number, "key-4"), range(4))]

    assert len({result_of(answer)["task"]["id"] for answer in answers}) == 1
    assert [answer.json()["id"] for answer in answers] == [*range(4)]
    assert count_turns(http, agent) == 1


def test_a_repeated_answer_gets_the_rest_of_the_task(http: httpx.Client) -> None:
    agent = create_agent(http, client_tools=[TIME])
    for key, parts in (("key-5", [{"text": "noon"}]), ("key-6", [])):
        waiting = send(http, agent, CALL)
        data = [{"data": {"callId": calls_of(waiting)[0]["callId"], "result": "noon"}}]
        params: Body = {"message": message(parts or data, taskId=waiting["id"])}

        first, second = (call(http, agent, "SendMessage", params, number, key) for number in (1, 2))

        assert result_of(first)["task"] == result_of(second)["task"]
        assert state_of(result_of(first)["task"]) == "COMPLETED"


def test_a_repeated_cancellation_gets_the_cancelled_task(http: httpx.Client) -> None:
    agent = create_agent(http, client_tools=[TIME])
    params: Body = {"id": send(http, agent, CALL)["id"]}

    answers = [call(http, agent, "CancelTask", params, number, "key-7") for number in (1, 2)]

    assert [state_of(result_of(answer)) for answer in answers] == ["CANCELED"] * 2


def test_a_repeated_message_for_the_worker_is_one_task(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http)
    params: Body = {"message": said("say: Once"), "configuration": {"returnImmediately": True}}

    first = call(http, agent, "SendMessage", params, 1, "key-8")
    waiting = call(http, agent, "SendMessage", params, 2, "key-8")
    app_fixture.run_waiting()
    done = call(http, agent, "SendMessage", params, 3, "key-8")

    tasks = [result_of(answer)["task"] for answer in (first, waiting, done)]
    assert len({task["id"] for task in tasks}) == 1
    assert [state_of(task) for task in tasks] == ["SUBMITTED", "SUBMITTED", "COMPLETED"]
    assert count_turns(http, agent) == 1


def test_a_refused_message_may_be_repeated(http: httpx.Client) -> None:
    agent, params = create_agent(http), {"message": said("Hi", contextId="unknown")}

    answers = [call(http, agent, "SendMessage", params, number, "key-9") for number in (1, 2)]

    assert [answer.json()["error"]["code"] for answer in answers] == [-32602] * 2
