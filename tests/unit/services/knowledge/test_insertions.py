import pytest

from stint.domain.errors import InvalidRequest, StintError
from stint.domain.vector_stores import DocumentSettings, DocumentStatus, FileContent, LastError
from stint.services.knowledge.insertions import is_waiting
from stint.store.stored_documents import StoredDocument


def document(status: DocumentStatus, error: LastError | None = None) -> StoredDocument:
    return StoredDocument(
        "key", status, 0, DocumentSettings(document_id="a", content=FileContent(file_id="f")), last_error=error
    )


def test_an_unreadable_document_is_the_callers_fault() -> None:
    failed = document("failed", LastError(code="invalid_file", message="It is encrypted."))

    with pytest.raises(InvalidRequest, match="'a' could not be ingested: It is encrypted"):
        is_waiting(failed)


def test_a_document_that_failed_for_another_reason_is_the_servers_fault() -> None:
    failed = document("failed", LastError(code="server_error", message="The embedding model is down."))

    with pytest.raises(StintError, match="embedding model is down") as raised:
        is_waiting(failed)
    assert not isinstance(raised.value, InvalidRequest)


def test_only_documents_in_progress_are_waited_for() -> None:
    assert is_waiting(document("in_progress"))
    assert not is_waiting(document("completed"))
    assert not is_waiting(None)
