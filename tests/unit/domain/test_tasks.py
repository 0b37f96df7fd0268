"""The format of the queue: a deployment meets messages that were sent before it."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from stint.domain.principals import Principal
from stint.domain.tasks import TASK, DeletionTask, IngestionTask, ObjectKind

OLD_MESSAGES: list[tuple[dict[str, Any], ObjectKind, tuple[str, ...]]] = [
    ({"kind": "delete", "tenant": "t", "agent_id": "a", "session_id": None}, "agent", ("a",)),
    ({"kind": "delete", "tenant": "t", "agent_id": "a"}, "agent", ("a",)),
    ({"kind": "delete", "tenant": "t", "agent_id": "a", "session_id": "s"}, "session", ("a", "s")),
    ({"kind": "delete_response", "tenant": "t", "response_id": "r"}, "response", ("r",)),
    ({"kind": "delete_conversation", "tenant": "t", "conversation_id": "c"}, "conversation", ("c",)),
    ({"kind": "delete_chat_completion", "tenant": "t", "chat_completion_id": "c"}, "chat_completion", ("c",)),
]


@pytest.mark.parametrize(("message", "kind", "ids"), OLD_MESSAGES)
def test_a_deletion_that_an_older_version_sent_is_read(
    message: dict[str, Any], kind: ObjectKind, ids: tuple[str, ...]
) -> None:
    task = TASK.validate_json(json.dumps(message))

    assert isinstance(task, DeletionTask)
    assert (task.tenant, task.object_kind, task.ids) == ("t", kind, ids)


@pytest.mark.parametrize(("message", "kind", "ids"), OLD_MESSAGES)
def test_an_older_version_reads_a_deletion_that_is_sent_now(
    message: dict[str, Any], kind: ObjectKind, ids: tuple[str, ...]
) -> None:
    sent = json.loads(DeletionTask.model_validate(message).model_dump_json())

    assert sent == {key: value for key, value in message.items() if value is not None}


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "delete", "tenant": "t", "session_id": "s"},
        {"kind": "delete", "tenant": "t", "response_id": "r"},
        {"kind": "delete_response", "tenant": "t", "agent_id": "a"},
        {"kind": "delete_conversation", "tenant": "t", "response_id": "r"},
        {"kind": "delete_response", "tenant": "t", "response_id": None},
    ],
)
def test_a_deletion_without_the_ids_of_its_kind_is_no_task(message: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TASK.validate_json(json.dumps(message))


def test_an_empty_session_id_does_not_name_the_agent() -> None:
    task = DeletionTask(tenant="t", agent_id="a", session_id="")

    assert (task.object_kind, task.ids) == ("session", ("a", ""))


CREATOR = Principal("t", "ann", frozenset({"use"}), "k1").to_context()
INGESTION = {"kind": "ingest", "tenant": "t", "vector_store_id": "v", "documents": ["d"]}


def test_an_ingestion_has_the_principal_that_sent_it() -> None:
    task = TASK.validate_json(json.dumps(INGESTION | {"creator": CREATOR}))

    assert isinstance(task, IngestionTask)
    assert task.principal is not None
    assert (task.principal.key_id, task.principal.subject) == ("k1", "ann")


def test_an_ingestion_that_an_older_version_sent_has_no_principal() -> None:
    task = TASK.validate_json(json.dumps(INGESTION))

    assert isinstance(task, IngestionTask)
    assert task.principal is None


@pytest.mark.parametrize("creator", [CREATOR | {"tenant": "other"}, {"tenant": "t"}, {}])
def test_an_ingestion_for_a_principal_of_another_tenant_is_refused(creator: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        TASK.validate_json(json.dumps(INGESTION | {"creator": creator}))
