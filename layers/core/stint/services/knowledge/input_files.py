"""Stored files as input of a model."""

from stint.documents.document_reader import StoredFileContent
from stint.domain.errors import InvalidRequest, NotFound
from stint.store.files import FileStore

PURPOSES = ("user_data", "assistants", "vision")
"""Purposes of files that a model may read. The others have data for machines."""


async def read_file(tenant: str, store: FileStore, file_id: str, most_bytes: int) -> StoredFileContent:
    """Read a file.

    Raises:
        InvalidRequest: there is no such file, it has another purpose, or more than `most_bytes`.
    """
    try:
        stored = await store.open(tenant, file_id)
        file = stored.file
        if file.purpose not in PURPOSES:
            raise InvalidRequest(
                f"File {file_id!r} has the purpose {file.purpose!r}. Upload it with the purpose user_data.",
                code="invalid_file_purpose",
            )
        if file.bytes > most_bytes:
            raise InvalidRequest(
                f"File {file_id!r} has {file.bytes:,} bytes; at most {most_bytes:,} can be read in a request. Put it "
                "into a vector store, and search it with file_search.",
                code="document_too_large",
            )
        return StoredFileContent(file.filename, b"".join([piece async for piece in store.read(stored)]))
    except NotFound as error:
        raise InvalidRequest(
            f"{error.message}. It was deleted, has expired, or never existed.", code=error.code
        ) from None
