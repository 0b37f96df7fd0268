"""Import of the sqlite files of Llama Stack."""

from pathlib import Path
from typing import Any

import pytest
from tests.script_model import Script, deadline, said, script
from tests.services.conftest import MakeTurnFixture
from tests.services.imports.kv_files import (
    AGENT,
    CALL,
    FIRST,
    SECOND,
    SESSION,
    THIRD,
    agent_value,
    october_agent,
    october_turn,
    session_rows,
    session_value,
    turn_value,
    waiting_turn,
    write_kv_file,
)
from tests.services.turn_fixture import TurnFixture, ended
from tests.store.conftest import Cloud

from stint.cli.imports import opened
from stint.cli.llama_stack.report import ImportReport
from stint.cli.llama_stack.store_import import LlamaStackImport
from stint.domain.inference import AssistantAnswer, UserInput
from stint.domain.llama_stack.events import TurnComplete
from stint.domain.steps import MemoryRetrievalStep
from stint.services.turns import turn_tail

TURNS = (
    turn_value(FIRST, "My name is Ann.", "Hello Ann.", 1),
    turn_value(SECOND, "And my cat is Tom.", "Noted.", 2),
    turn_value(THIRD, "Thanks.", "Welcome.", 3),
)


async def run_import(cloud: Cloud, tenant: str, path: Path, *, dry_run: bool = False) -> ImportReport:
    with opened(path) as source:
        return await LlamaStackImport(tenant, cloud.store, source, 30, dry_run=dry_run).run()


@pytest.fixture
def imported(make_turn_fixture: MakeTurnFixture) -> TurnFixture:
    """Return a process that serves the session of the file."""
    fixture = make_turn_fixture(script(said("You are Ann.")))
    fixture.agent_id, fixture.session_id = AGENT, SESSION
    return fixture


async def test_turns_are_imported_in_the_order_of_their_start(
    cloud: Cloud, tenant: str, tmp_path: Path, imported: TurnFixture
) -> None:
    report = await run_import(cloud, tenant, write_kv_file(tmp_path / "kv.db", session_rows(*TURNS)))

    session = await imported.sessions.get(AGENT, SESSION)
    assert (session.session_name, session.started_at.year) == ("talk", 2026)
    assert [turn.output_message.content for turn in session.turns] == ["Hello Ann.", "Noted.", "Welcome."]
    assert [counts.imported for counts in (report.agents, report.sessions, report.turns, report.steps)] == [1, 1, 3, 3]
    assert report.bad == []


async def test_an_imported_session_goes_on_and_the_model_sees_its_history(
    cloud: Cloud, tenant: str, tmp_path: Path, imported: TurnFixture
) -> None:
    await run_import(cloud, tenant, write_kv_file(tmp_path / "kv.db", session_rows(*TURNS)))

    turn = await imported.turn("Who am I?")

    assert turn.output_message.content == "You are Ann."
    assert isinstance(imported.model, Script)
    seen = [message for message in imported.model.requests[-1].messages if isinstance(message, UserInput)]
    assert [message.content for message in seen] == ["My name is Ann.", "And my cat is Tom.", "Thanks.", "Who am I?"]
    assert any(isinstance(message, AssistantAnswer) for message in imported.model.requests[-1].messages)
    assert [stored.turn_id for stored in await imported.stored()][-1] == turn.turn_id


async def test_the_old_id_of_a_turn_still_finds_it(
    cloud: Cloud, tenant: str, tmp_path: Path, imported: TurnFixture
) -> None:
    await run_import(cloud, tenant, write_kv_file(tmp_path / "kv.db", session_rows(*TURNS)))

    turn = await imported.get(SECOND)
    pages, _ = await imported.sessions.read_pages(AGENT, SESSION, {SECOND, THIRD})

    assert turn.output_message.content == "Noted."
    assert turn.turn_id != SECOND
    assert [each.output_message.content for each in pages.turns] == ["Noted.", "Welcome."]
    assert (await imported.turns.step(AGENT, SESSION, SECOND, turn.steps[0].step_id)).turn_id == turn.turn_id


async def test_a_second_import_changes_nothing(cloud: Cloud, tenant: str, tmp_path: Path) -> None:
    path = write_kv_file(tmp_path / "kv.db", session_rows(*TURNS, waiting_turn("4" + THIRD[1:], 4)))
    await run_import(cloud, tenant, path)
    before = cloud.items(tenant)

    report = await run_import(cloud, tenant, path)

    assert cloud.items(tenant) == before
    assert [counts.present for counts in (report.agents, report.sessions, report.turns, report.steps)] == [1, 1, 4, 4]
    assert [counts.imported for counts in (report.agents, report.sessions, report.turns, report.steps)] == [0] * 4
    assert report.bad == []


async def test_an_import_that_ended_before_the_session_was_stored_is_repeated(
    cloud: Cloud, tenant: str, tmp_path: Path, imported: TurnFixture
) -> None:
    path = write_kv_file(tmp_path / "kv.db", session_rows(*TURNS))
    await run_import(cloud, tenant, path)
    await cloud.store.session_records.remove(tenant, AGENT, SESSION)

    report = await run_import(cloud, tenant, path)

    assert (report.sessions.imported, report.bad) == (1, [])
    assert len(await imported.stored()) == 3


async def test_a_turn_that_waits_for_its_client_is_resumed_by_its_old_id(
    cloud: Cloud, tenant: str, tmp_path: Path, imported: TurnFixture
) -> None:
    rows = session_rows(*TURNS[:1], waiting_turn(SECOND, 2))
    step = {"step_id": "d488c1f8-e218-4615-a4a3-66759ddf5ec7", "tool_calls": [CALL]}
    rows[f"in_progress_tool_call_step:{AGENT}:{SESSION}:{SECOND}"] = step
    await run_import(cloud, tenant, write_kv_file(tmp_path / "kv.db", rows))
    assert (await imported.get(SECOND)).status == "awaiting_input"

    turn = await imported.resumed(SECOND, ("call_1", "-100"))

    assert (turn.status, turn.output_message.content) == ("completed", "You are Ann.")
    assert turn.steps[1].step_id == step["step_id"]


async def test_a_resumed_turn_is_followed_by_its_old_id(
    cloud: Cloud, tenant: str, tmp_path: Path, imported: TurnFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_tail, "QUIET_SECONDS", 1_000)  # the tail reads new records, not the whole turn again
    rows = session_rows(*TURNS[:1], waiting_turn(SECOND, 2))
    await run_import(cloud, tenant, write_kv_file(tmp_path / "kv.db", rows))
    events = imported.turns.run(await imported.resume(SECOND, ("call_1", "-100")))
    await anext(events)
    tailed = await imported.services.turn_requests.tail.follow(AGENT, SESSION, SECOND, -1, deadline(5))
    ended([event async for event in events])

    assert isinstance([each.event async for each in tailed][-1], TurnComplete)


async def test_turns_of_october_2024_have_the_fields_of_later_ones(
    cloud: Cloud, tenant: str, tmp_path: Path, imported: TurnFixture
) -> None:
    rows = session_rows(*TURNS[:1], october_turn(SECOND, 2), memory_bank_id="bank1")

    report = await run_import(cloud, tenant, write_kv_file(tmp_path / "kv.db", rows))

    turn = await imported.get(SECOND)
    retrieval = turn.steps[0]
    assert isinstance(retrieval, MemoryRetrievalStep)
    assert (retrieval.vector_db_ids, retrieval.inserted_context) == (
        "bank1,bank2",
        "Retrieved:\nid:doc-2; content:Paris.",
    )
    assert retrieval.started_at == turn.started_at
    assert [message.role for message in turn.input_messages] == ["user", "tool"]
    assert turn.input_messages[1].content == "-\n1"
    assert report.without_memory == [SESSION]


async def test_agents_of_october_2024_keep_the_tools_that_can_be_used(
    cloud: Cloud, tenant: str, tmp_path: Path, imported: TurnFixture
) -> None:
    function = {"function_name": "f", "description": "d", "parameters": {"x": {"param_type": "int"}}}
    agent = october_agent(
        {"type": "brave_search", "api_key": "k", "engine": "bing"},
        {"type": "brave_search", "api_key": "k", "engine": "brave"},
        {"type": "function_call"} | function,
    )
    rows = session_rows(october_turn(SECOND, 2)) | {f"agent:{AGENT}": agent}

    report = await run_import(cloud, tenant, write_kv_file(tmp_path / "kv.db", rows))

    config = await imported.agents.config(AGENT)
    assert [tool.name for tool in config.client_tools] == ["f"]
    assert [group if isinstance(group, str) else group.name for group in config.toolgroups] == ["builtin::websearch"]
    assert [(each.key, "Bing" in each.note) for each in report.changed] == [(f"agent:{AGENT}", True)]
    assert (report.bad, report.turns.imported) == ([], 1)


async def test_turns_inside_a_session_are_imported_too(
    cloud: Cloud, tenant: str, tmp_path: Path, imported: TurnFixture
) -> None:
    rows = session_rows(TURNS[1], turns=[TURNS[0], TURNS[1], {"turn_id": 7}])

    report = await run_import(cloud, tenant, write_kv_file(tmp_path / "kv.db", rows))

    assert [turn.output_message.content for turn in await imported.stored()] == ["Hello Ann.", "Noted."]
    assert (report.turns.found, report.bad) == (2, [])


async def test_rows_in_the_namespace_of_a_shared_file_are_found(cloud: Cloud, tenant: str, tmp_path: Path) -> None:
    rows = {f"agents_store:{key}": value for key, value in session_rows(*TURNS).items()}

    report = await run_import(cloud, tenant, write_kv_file(tmp_path / "kv.db", rows))

    assert (report.turns.imported, report.bad) == (3, [])


async def test_a_large_turn_is_stored_whole(cloud: Cloud, tenant: str, tmp_path: Path, imported: TurnFixture) -> None:
    text = "".join(f"{number:x} " for number in range(200_000))

    report = await run_import(
        cloud, tenant, write_kv_file(tmp_path / "kv.db", session_rows(turn_value(FIRST, text, "Long.", 1)))
    )

    assert (report.bad, len(cloud.blobs(tenant))) == ([], 1)
    assert (await imported.get(FIRST)).input_messages[0].content == text


async def test_a_session_of_an_agent_without_persistence_expires(cloud: Cloud, tenant: str, tmp_path: Path) -> None:
    rows = session_rows(*TURNS) | {f"agent:{AGENT}": agent_value(enable_session_persistence=False)}

    await run_import(cloud, tenant, write_kv_file(tmp_path / "kv.db", rows))

    others = [item for item in cloud.items(tenant) if "#agent" not in item["pk"]["S"]]
    assert others
    assert [item for item in others if "expires_at" not in item] == []


async def test_a_dry_run_counts_and_writes_nothing(cloud: Cloud, tenant: str, tmp_path: Path) -> None:
    path = write_kv_file(tmp_path / "kv.db", session_rows(*TURNS))

    report = await run_import(cloud, tenant, path, dry_run=True)

    assert (report.dry_run, report.turns.imported, cloud.items(tenant)) == (True, 3, [])


DEEP = '{"steps":' + "[" * 5_000 + "]" * 5_000 + "}"


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (f"agent:{FIRST}", {"model": "m"}, "instructions: Field required"),
        (f"agent:{FIRST}", "not JSON", "expected"),
        (f"agent:{FIRST}", b"\x00\xff", "not a text"),
        (f"agent:{FIRST}", "[1]", "not a JSON object"),
        (f"agent:{FIRST}", agent_value(created_at="yesterday"), "created_at is not a time"),
        ("agent:../../etc", agent_value(), "not UUIDs"),
        (f"session:{FIRST}:{SESSION}", session_value(), "its agent was not imported"),
        (f"session:{AGENT}:{FIRST}", session_value(session_name=None), "session_name: Input should be a valid string"),
        (f"session:{AGENT}:{FIRST}", session_value(started_at=7), "started_at is not a time"),
        (f"session:{AGENT}:{FIRST}:{SECOND}", turn_value(SECOND, "a", "b", 1), "does not have its session"),
        (f"session:{AGENT}:{SESSION}:{FIRST}", turn_value(FIRST, "a", "b", 1, steps=7), "steps is not a list"),
        (f"session:{AGENT}:{SESSION}:{FIRST}", turn_value(FIRST, "a", "b", 1, steps=[{}]), "step"),
        (f"session:{AGENT}:{SESSION}:{FIRST}", turn_value(FIRST, "a", "b", 1, input_messages=[3]), "input_messages"),
        (f"session:{AGENT}:{SESSION}:{FIRST}", turn_value(FIRST, "a", "b", 1, started_at="1901-01-01"), "before 1970"),
        (f"session:{AGENT}:{SESSION}:{FIRST}", turn_value(FIRST, "a", "b", 1, started_at=None), "started_at"),
        (f"session:{AGENT}:{SESSION}:{FIRST}", DEEP, "nested deeper"),
        (f"in_progress_tool_call_step:{FIRST}:{SESSION}:{SECOND}", {}, "does not have its session"),
    ],
)
async def test_a_bad_row_is_listed_and_the_others_are_imported(
    cloud: Cloud, tenant: str, tmp_path: Path, key: str, value: Any, reason: str
) -> None:
    rows = session_rows(TURNS[1]) | {key: value, "num_infer_iters_in_turn:a:b:c": "2"}

    report = await run_import(cloud, tenant, write_kv_file(tmp_path / "kv.db", rows))

    [bad] = report.bad
    assert bad.key == key
    assert reason in bad.reason
    assert (report.turns.imported, report.ignored) == (1, 1)


async def test_a_turn_that_a_stored_session_lacks_is_listed(cloud: Cloud, tenant: str, tmp_path: Path) -> None:
    await run_import(cloud, tenant, write_kv_file(tmp_path / "old.db", session_rows(TURNS[0])))

    report = await run_import(cloud, tenant, write_kv_file(tmp_path / "new.db", session_rows(*TURNS)))

    assert [row.key.rpartition(":")[2] for row in report.bad] == [SECOND, THIRD]
    assert "Delete the session" in report.bad[0].reason
    assert (report.turns.present, report.turns.imported) == (1, 0)
