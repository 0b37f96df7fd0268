"""The keys of files, uploads, containers and vector stores, beside those in `stint.store.keys`.

Functions with a plural name return partitions (`pk`), the others whole keys.
"""

from hashlib import sha256

from stint.domain.errors import NotFound
from stint.domain.ids import HEX, is_name
from stint.store.keys import Key, checked_tenant

DOCUMENTS = "document:"
ENTITIES = "entity:"
PARTS = "part:"

SHARDS = 8
"""Number of shards of the list entries of a tenant's files, or vector stores."""


def vector_index(tenant: str, store_id: str) -> str:
    """Return the name of the index of a vector store: 3 to 63 characters of a-z, 0-9 and - (S3 Vectors, "Indexes")."""
    digits = _digits("Vector store", "vs_", store_id)
    return f"vs-{digits}-{index_owner(tenant)}"


def index_owner(tenant: str) -> str:
    """Return the part of a tenant in the names of its indexes. A policy of IAM compares it."""
    return sha256(checked_tenant(tenant).encode()).hexdigest()[:16]


def vector_store_blobs(tenant: str, store_id: str) -> str:
    """The prefix of the objects of a vector store in the bucket."""
    return f"kept/{checked_tenant(tenant)}/vector_stores/{_digits('Vector store', 'vs_', store_id)}/"


def files(tenant: str) -> list[str]:
    """The shards of a tenant's files, so that not all of them are written to one partition."""
    return [f"{checked_tenant(tenant)}#file.{shard}" for shard in range(SHARDS)]


def file(tenant: str, file_id: str) -> Key:
    """The record of a file, which is its list entry, too."""
    shard = int(_digits("File", "file-", file_id)[-1], 16) % SHARDS
    return Key(f"{checked_tenant(tenant)}#file.{shard}", file_id)


def file_blobs(tenant: str, file_id: str, *, expires: bool = False) -> str:
    """The prefix of the objects of a file in the bucket. A rule of the bucket removes those of files that expire."""
    digits = _digits("File", "file-", file_id)
    return f"{'expiring' if expires else 'kept'}/{checked_tenant(tenant)}/files/{digits}/"


def upload(tenant: str, upload_id: str) -> Key:
    """The record of an upload, in the partition of its parts."""
    _digits("Upload", "upload_", upload_id)
    return Key(f"{checked_tenant(tenant)}#upload:{upload_id}", "meta")


def upload_part(tenant: str, upload_id: str, part_id: str) -> Key:
    _digits("Upload part", "part_", part_id)
    return Key(upload(tenant, upload_id).pk, f"{PARTS}{part_id}")


def part_of(sk: str) -> str:
    """Return the id of the part with a sort key."""
    return sk.removeprefix(PARTS)


def upload_blobs(tenant: str, upload_id: str, *, expires: bool) -> str:
    """The prefix of the objects of an upload's parts, which stay there when it becomes a file."""
    digits = _digits("Upload", "upload_", upload_id)
    return f"{'expiring' if expires else 'kept'}/{checked_tenant(tenant)}/uploads/{digits}/"


def containers(tenant: str) -> list[str]:
    """The shards of a tenant's containers. Each has whole records."""
    return [f"{checked_tenant(tenant)}#container.{shard}" for shard in range(SHARDS)]


def container(tenant: str, container_id: str) -> Key:
    """The record of a container with the list of its files."""
    shard = int(_digits("Container", "cntr_", container_id)[-1], 16) % SHARDS
    return Key(f"{checked_tenant(tenant)}#container.{shard}", container_id)


def container_blobs(tenant: str, container_id: str) -> str:
    """The prefix of the objects of a container's files in the bucket, all of which expire."""
    return f"expiring/{checked_tenant(tenant)}/containers/{_digits('Container', 'cntr_', container_id)}/"


def is_file_id(value: str) -> bool:
    return is_name("file", value, "-")


def vector_stores(tenant: str) -> list[str]:
    """The shards of a tenant's vector stores. Each has whole records."""
    return [f"{checked_tenant(tenant)}#vector_store.{shard}" for shard in range(SHARDS)]


def vector_store(tenant: str, store_id: str) -> Key:
    shard = int(_digits("Vector store", "vs_", store_id)[-1], 16) % SHARDS
    return Key(f"{checked_tenant(tenant)}#vector_store.{shard}", store_id)


def vector_db_names(tenant: str) -> str:
    """The partition of the names of vector dbs."""
    return f"{checked_tenant(tenant)}#vector_db"


def vector_db_name(tenant: str, identifier: str) -> Key:
    return Key(vector_db_names(tenant), identifier)


def vector_store_records(tenant: str, store_id: str) -> str:
    """The partition of a vector store: its documents, file batches and entities."""
    _digits("Vector store", "vs_", store_id)
    return f"{checked_tenant(tenant)}#vector_store:{store_id}"


def vector_store_document(tenant: str, store_id: str, document: str) -> Key:
    """A document of a vector store, by the id of its file or by `document_key`."""
    prefix = "doc-" if document.startswith("doc-") else "file-"
    _digits("File", prefix, document)
    return Key(vector_store_records(tenant, store_id), f"{DOCUMENTS}{document}")


def document_key(document_id: str) -> str:
    """Return the key of a document that has no file, by any id that its caller chose."""
    return f"doc-{sha256(document_id.encode()).hexdigest()[:32]}"


def entity(tenant: str, store_id: str, name: str) -> Key:
    """The record of an entity that documents of a vector store name."""
    digest = sha256(name.encode()).hexdigest()[:32]
    return Key(vector_store_records(tenant, store_id), f"{ENTITIES}{digest}")


def entity_document(tenant: str, store_id: str, name: str, document: str) -> Key:
    """The link from an entity to a document that names it."""
    key = entity(tenant, store_id, name)
    vector_store_document(tenant, store_id, document)
    return Key(key.pk, f"{links_of(key)}{document}")


def links_of(entity_key: Key) -> str:
    """Return the beginning of the sort keys of the links of an entity."""
    return f"{entity_key.sk}:"


def linked_document(sk: str) -> str:
    """Return the document of a link."""
    return sk.rpartition(":")[2]


def document_blobs(tenant: str, store_id: str, document: str) -> str:
    """The prefix of the objects of a document in the bucket."""
    vector_store_document(tenant, store_id, document)
    return f"{vector_store_blobs(tenant, store_id)}documents/{document}/"


def file_batch(tenant: str, store_id: str, batch_id: str) -> Key:
    _digits("File batch", "vsfb_", batch_id)
    return Key(vector_store_records(tenant, store_id), f"batch:{batch_id}")


def _digits(kind: str, prefix: str, value: str) -> str:
    """Return the digits of an id, so that no text from outside can address another record."""
    digits = value.removeprefix(prefix)
    if digits == value or HEX.fullmatch(digits) is None:
        raise NotFound(kind, value)
    return digits
