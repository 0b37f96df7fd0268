"""The rows of many sessions, and the client that measures them."""

from infra.bench.client import Api, complete
from infra.bench.report import render
from infra.bench.sessions import MANY_STREAMS, ONE_STREAM, Results, rows_against, rows_at_once
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer


def results(rate: float, errors: int) -> Results:
    found: Results = {"time to first event": [10.0]}
    for name in ("1 session", "8 sessions", "32 sessions", "64 sessions"):
        found[f"turns a second, {name}"] = [rate, rate, rate]
        found[f"errors, {name}"] = [0, 0, errors]
    found[ONE_STREAM], found[MANY_STREAMS] = [70.0], [84.0]
    return found


def test_many_sessions_are_compared_with_one() -> None:
    table = render("At once", "sessions", "1 session", rows_at_once(results(20, 2)))

    lines = {line[2:40].strip(): line[40:].split() for line in table.splitlines()[2:]}
    assert lines["turns a second, 64 sessions"] == ["20.0", "/s", "20.0", "/s", "1.00"]
    assert lines["errors, 64 sessions"] == ["2", "0", "-"]
    assert lines[MANY_STREAMS] == ["84.0", "MB", "70.0", "MB", "1.20"]


def test_every_result_is_compared_with_the_base() -> None:
    table = render("Base", "this", "base", rows_against(results(30, 0), results(20, 3)))

    lines = {line[2:40].strip(): line[40:].split() for line in table.splitlines()[2:]}
    assert lines["turns a second, 8 sessions"] == ["30.0", "/s", "20.0", "/s", "1.50"]
    assert lines["errors, 8 sessions"] == ["0", "3", "0.00"]
    assert lines["time to first event"] == ["10.0", "ms", "10.0", "ms", "1.00"]


def test_turns_that_are_refused_or_cut_are_errors() -> None:
    replies = {
        "/refused/turn": Reply(status=429),
        "/cut/turn": Reply((b'data: {"event": 1}\n\n',)),
        "/whole/turn": Reply((b'data: {"event_type": "turn_complete"}\n\n',)),
    }

    def answer(received: Received) -> Reply:
        return replies[received.path]

    with ScriptedHTTPServer(answer) as server:
        api = Api(server.url)
        turns = [complete(api, session, "say: hi") for session in ("/refused", "/cut", "/whole")]
        api.close()

    assert [turn is not None for turn in turns] == [False, False, True]
