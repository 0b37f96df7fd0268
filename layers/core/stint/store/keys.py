"""The keys of all records and blobs: one table of templates. Few other modules know a prefix.

`Partition("session:{agent}")` makes the `pk` of an agent's sessions, and its `record("{session}")` the key of one.
Both are called with the tenant and the values of the placeholders, in order. Each id has a check, so none from outside
can address another record: one of another form raises NotFound with the name of its kind. The other texts raise
InvalidRequest or ValueError, or are in FREE, because their callers have checked them. The templates have the form of
the table in docs/architecture.md.

`pk` without the tenant, followed by ":" and `sk`, is the key that Llama Stack's KV store uses for the same thing.
Plural names are partitions (`pk`), the others whole keys.
"""

import re
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from hashlib import sha256
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from stint.domain.errors import Conflict, InvalidRequest, NotFound
from stint.domain.ids import HEX, TENANT_PATTERN, is_inline_agent, is_name, order_of
from stint.domain.ids import PATTERN as UUID

if TYPE_CHECKING:
    from stint.domain.usage import UsageSource

SHARDS = 8
"""Number of partitions of the list entries of a kind, so that a tenant does not write all of them to one."""

STOP_COPIES = 8
"""Number of copies of a tenant's stops. A partition serves 6,000 of their reads a second (DynamoDB, "Quotas").

Each running turn causes about one of these reads a second, so one record would hold a tenant at that many.
"""

LAST_INDEX = 9_999
"""The highest index in a log, because keys have four digits."""

LONGEST_PK, LONGEST_SK = 2048, 1024
"""Maximum bytes of a key (DynamoDB, "Quotas": partition keys and sort keys)."""

IDS: Mapping[str, tuple[str, str]] = {
    "agent": ("Agent", ""),
    "session": ("Session", ""),
    "turn": ("Turn", ""),
    "response": ("Response", "resp_"),
    "conversation": ("Conversation", "conv_"),
    "chat_completion": ("Chat completion", "chatcmpl_"),
    "file": ("File", "file-"),
    "upload": ("Upload", "upload_"),
    "part": ("Upload part", "part_"),
    "container": ("Container", "cntr_"),
    "vault": ("Vault", "vault_"),
    "credential": ("Credential", "cred_"),
    "automation": ("Automation", "automation_"),
    "invocation": ("Invocation", "invocation_"),
    "store": ("Vector store", "vs_"),
    "batch": ("File batch", "vsfb_"),
}
"""The placeholders of ids: the name of the kind in NotFound, and the prefix before 32 hex digits. Without: a UUID."""

FREE = frozenset({"copy", "day", "event", "first", "folder", "identifier", "kind", "month", "retry_count", "shard"})
"""The placeholders of texts and numbers that callers have checked."""

KEPT = 64
"""Keys of each template that a process keeps."""

KeyLayout: TypeAlias = Literal["compatible", "spread"]
"""Which keys of sessions and stops are written: `compatible` writes those of the previous release, too.

An update needs two steps, because both versions write at once meanwhile: the new code with `compatible`, then `spread`.
"""

Check = Callable[[Any], str | int]

ITEM = re.compile(r"[a-z]+_([0-9a-f]{32})([0-9]{2,4}|[0-9]{8})?")
OBJECT = re.compile(r"(?:[a-z]+_)?[0-9a-f]{32}")
KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Key(NamedTuple):
    pk: str
    sk: str


class Template:
    """Texts with placeholders, which are checked when they are filled in, in the order of the texts.

    `{file_digits}` is the id of a file without its prefix.
    """

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    @cached_property
    def _compiled(self) -> tuple[list[Check], list[Callable[..., str]]]:
        # When first used: a cold start uses few of the templates.
        checks, forms = list[Check](), list[Callable[..., str]]()
        for text in self.texts:
            form = ""
            for before, field, spec, _ in Formatter().parse(text):
                form += before
                if field is not None:
                    form += f"{{{len(checks)}:{spec}}}"
                    checks.append(_check_of(field))
            forms.append(form.format)
        return checks, forms

    @cached_property
    def fill(self) -> Callable[..., tuple[str, ...]]:
        """Return the function that fills in values. It keeps the last texts, because a run needs most of them again."""
        checks, forms = self._compiled

        @lru_cache(KEPT)
        def fill(*values: str | int) -> tuple[str, ...]:
            checked = [check(value) for check, value in zip(checks, values, strict=True)]
            return tuple([form(*checked) for form in forms])

        return fill


class Partition(Template):
    """The partitions of a kind of record."""

    def __init__(self, pk: str) -> None:
        super().__init__(f"{{tenant}}#{pk}")

    def __call__(self, tenant: str, *values: str | int) -> str:
        return self.fill(tenant, *values)[0]

    def record(self, sk: str) -> "Record":
        return Record(*self.texts, sk)


class Record(Template):
    """The keys of a kind of record."""

    def __call__(self, tenant: str, *values: str | int) -> Key:
        return Key(*self.fill(tenant, *values))


class Shards:
    """The partitions of list entries. The last digit of an id decides in which one its entry is."""

    def __init__(self, name: str, sk: str) -> None:
        self._shard = Partition(f"{name}.{{shard}}")
        self._sk = Template(sk)

    def __call__(self, tenant: str) -> list[str]:
        return [self._shard(tenant, shard) for shard in range(SHARDS)]

    def entry(self, tenant: str, identifier: str) -> Key:
        [sk] = self._sk.fill(identifier)
        return Key(self._shard(tenant, shard_of(sk)), sk)


class Prefix(Template):
    """The prefixes of the objects of a kind in the bucket. Rules of the bucket remove those of objects that expire."""

    def __init__(self, path: str, *, kept: str = "kept", expiring: str = "expiring") -> None:
        super().__init__(f"{{folder}}/{{tenant}}/{path}")
        self._kept, self._expiring = kept, expiring

    def __call__(self, tenant: str, *values: str | int, expires: bool = False) -> str:
        return self.fill(self._expiring if expires else self._kept, tenant, *values)[0]


def checked_tenant(value: str) -> str:
    """Return a tenant that may be part of a key. Raises ValueError."""
    if TENANT_PATTERN.fullmatch(value) is None:
        raise ValueError(f"{value!r} is not a valid tenant: use up to 32 of a-z, 0-9 and '-', not beginning with '-'")
    return value


def _check_of(field: str) -> Check:
    """Return the check of a placeholder, which returns what the key has of a value."""
    name = field.removesuffix("_digits")
    if name not in IDS:
        return _as_is if name in FREE else CHECKS[name]
    kind, prefix = IDS[name]
    pattern = HEX if prefix else UUID

    def check(value: str) -> str:
        digits = value[len(prefix) :]
        if not value.startswith(prefix) or pattern.fullmatch(digits) is None:
            raise NotFound(kind, value)
        return value if name == field else digits

    return check


def _as_is(value: str | int) -> str | int:
    return value


def _document(value: str) -> str:
    """Return the id of a file, or the key of a document without a file."""
    if not is_name("doc", value, "-") and not is_file_id(value):
        raise NotFound("File", value)
    return value


def checked_digest(value: str) -> str:
    """Return the SHA-256 of a request in hex. Raises ValueError."""
    if re.fullmatch("[0-9a-f]{64}", value) is None:
        raise ValueError(f"{value!r} is not the SHA-256 of a request in hex.")
    return value


def _fingerprint(value: str) -> str:
    if HEX.fullmatch(value) is None:
        raise ValueError(f"{value!r} is not the fingerprint of a request.")
    return value


def _pair(value: str) -> str:
    if HEX.fullmatch(value) is None:
        raise ValueError(f"{value!r} is not the hash of a pair of metadata.")
    return value


def _object_id(value: str) -> str:
    if OBJECT.fullmatch(value) is None and UUID.fullmatch(value) is None:
        raise ValueError(f"{value!r} is not the id of an object.")
    return value


def _key_id(value: str) -> str:
    if KEY_ID.fullmatch(value) is None:
        raise InvalidRequest("The id of the API key is invalid.")
    return value


def short_hash(text: str) -> str:
    """Return a text of a fixed length for one that may have any characters."""
    return sha256(text.encode()).hexdigest()[:32]


CHECKS: Mapping[str, Callable[[str], str]] = {
    "call": short_hash,
    "digest": checked_digest,
    "document": _document,
    "entity": short_hash,
    "fingerprint": _fingerprint,
    "key": _key_id,
    "object": _object_id,
    "pair": _pair,
    "subject": short_hash,
    "tenant": checked_tenant,
}
"""The placeholders of other texts. Calls, entities and subjects may have any characters, so keys have their hashes."""


# Agents, sessions and turns. A list entry exists as long as its agent.
agents = Partition("agent")
_listed_agent = agents.record("{agent}")
_agent_records = Partition("agent:{agent}")
_inline_agent = _agent_records.record("entry")
agent_config = _agent_records.record("config")
changed_agent = _agent_records.record("changed")
agent_blobs = Prefix("{agent}/", expiring="ephemeral")
sessions = Partition("session:{agent}")
session = sessions.record("{session}")
session_blobs = Prefix("{agent}/{session}/", expiring="ephemeral")
session_files = Prefix("{agent}/{session}/files/", expiring="ephemeral")
turns = Partition("session:{agent}:{session}")
session_state = turns.record("state")
session_name = turns.record("name")
session_settings = turns.record("settings")
turn = turns.record("{turn}")
turn_blobs = Prefix("{agent}/{session}/{turn}/", expiring="ephemeral")
segment = turns.record("history:{turn}")
imported_turn = turns.record("imported:{turn}")
pending_calls = Partition("in_progress_tool_call_step:{agent}:{session}")
pending = pending_calls.record("{turn}")
call_result = pending_calls.record("{turn}:{call}")
session_partials = Partition("partial_step:{agent}:{session}")
session_places = Partition("waiting_session:{agent}:{session}")
all_sessions = Shards("all_sessions", "{session}")
listed_session = all_sessions.entry
session_pairs = Partition("metadata:session:{pair}")
session_pair = session_pairs.record("{session}")
agent_pairs = Partition("metadata:agent:{pair}")
agent_pair = agent_pairs.record("{agent}")
waiting_turns = Partition("waiting_turn:{agent}:{session}")
thread = Partition("thread:{digest}").record("session")
session_waiting_blobs = Prefix("{agent}/{session}/waiting/", expiring="ephemeral")

# Responses and conversations
responses = Shards("response", "{response}")
response_entry = responses.entry
response_records = Partition("response:{response}")
response = response_records.record("meta")
response_lease = response_records.record("lease")
response_events = response_records.record("stream:{first:08d}")
response_blobs = Prefix("responses/{response}/")
_response_partials = Partition("partial_step:{response}")
conversations = Shards("conversation", "{conversation}")
conversation_entry = conversations.entry
conversation_items = Partition("conversation:{conversation}")
conversation = conversation_items.record("meta")
conversation_blobs = Prefix("conversations/{conversation}/")
conversation_places = Partition("waiting_conversation:{conversation}")
left_places = Partition("left_conversation:{conversation}")
conversation_waiting_blobs = Prefix("conversations/{conversation}/waiting/")
waiting_responses = Partition("waiting_response")
chat_completions = Shards("chat_completion", "{chat_completion}")
chat_completion = chat_completions.entry
chat_completion_blobs = Prefix("chat_completions/{chat_completion}/")

# Files, containers, vaults, automations and vector stores
files = Shards("file", "{file}")
file = files.entry
file_blobs = Prefix("files/{file_digits}/")
_upload_records = Partition("upload:{upload}")
upload = _upload_records.record("meta")
upload_part = _upload_records.record("part:{part}")
upload_blobs = Prefix("uploads/{upload_digits}/")
containers = Shards("container", "{container}")
container = containers.entry
container_blobs = Prefix("containers/{container_digits}/", kept="expiring")
vaults = Partition("vault")
vault = vaults.record("{vault}")
vault_count = Partition("vaults").record("count")
vault_credentials = Partition("vault:{vault}")
vault_credential = vault_credentials.record("credential:{credential}")
automations = Partition("automation")
automation = automations.record("{automation}")
automation_count = Partition("automations").record("count")
automation_invocations = Partition("automation:{automation}")
automation_invocation = automation_invocations.record("{invocation}")
vector_stores = Shards("vector_store", "{store}")
vector_store = vector_stores.entry
_store_digits = Template("{store_digits}")
vector_store_blobs = Prefix("vector_stores/{store_digits}/")
vector_store_records = Partition("vector_store:{store}")
vector_store_document = vector_store_records.record("document:{document}")
document_blobs = Prefix("vector_stores/{store_digits}/documents/{document}/")
entity = vector_store_records.record("entity:{entity}")
entity_document = vector_store_records.record("entity:{entity}:{document}")
file_batch = vector_store_records.record("batch:{batch}")
vector_db_names = Partition("vector_db")
vector_db_name = vector_db_names.record("{identifier}")

# Requests. The function `admin` reaches no records of other requests.
idempotency = Partition("idempotency:{digest}").record("request")
admin_idempotency = Partition("admin-idempotency:{digest}").record("request")
idempotency_blobs = Prefix("idempotency/{digest}/", kept="expiring")
event = Partition("event:{event}").record("claim")
retry_claim = Partition("retry:{object}").record("{retry_count:04d}")
mcp_calls = Partition("mcp_call:{digest}")
mcp_call = mcp_calls.record("{turn}")
creation_attempts = Partition("attempt:{fingerprint}")
creation_attempt = creation_attempts.record("{object}")

# The rest of a tenant. The partition of the signing key is never deleted.
registrations = Partition("registry")
registration = registrations.record("{kind}:{identifier}")
registration_blobs = Prefix("registry/")
signing_key = Partition("signing_key").record("opaque")
tenant_budget = Partition("budget:tenant").record("{month}")
key_budget = Partition("budget:key:{key}").record("{month}")
subject_budget = Partition("budget:subject:{subject}").record("{month}")
_usage_of_day = Partition("usage:{day}")
running = Shards("running", "{object}")
stops = Partition("stop").record("all")
stop_copy = Partition("stop:{copy}").record("all")


DOCUMENTS = "document:"
ITEMS = "item:"

AFTER_TURNS = "g"
"""Sorts after all turns and records, and before the other records in a session's partition."""

AFTER_SEGMENTS = "i"
"""Sorts after all turns and segments, and before the session's other records."""

AFTER_INDEXES = "a"
"""Sorts after the indexes of a log, and before the other records of a response."""

AFTER_RECORDS = "n"
"""Sorts after the log, the lease and the header of a response, and before its stored stream."""


def agent(tenant: str, agent_id: str) -> Key:
    """The entry of an agent: in the list of all, or, if only one session has it, beside its configuration."""
    return (_inline_agent if is_inline_agent(agent_id) else _listed_agent)(tenant, agent_id)


def record(tenant: str, agent_id: str, session_id: str, turn_id: str, index: int) -> Key:
    """One entry of a turn's log. Raises Conflict if the log is full."""
    if index > LAST_INDEX:
        raise Conflict(f"Turn {turn_id} has {index} records, the maximum. Create another turn.", code="turn_full")
    pk, sk = turn(tenant, agent_id, session_id, turn_id)
    return Key(pk, f"{sk}:{index:04d}")


def after_records(tenant: str, agent_id: str, session_id: str, turn_id: str) -> Key:
    """Sorts after the log of a turn. No record has this key."""
    pk, sk = turn(tenant, agent_id, session_id, turn_id)
    return Key(pk, f"{sk}:{AFTER_INDEXES}")


def place_in_history(turn_id: str, records: int | None) -> str:
    """Return the sort key after all that a session had before a turn, or when the turn's log had some records."""
    return turn_id if records is None else f"{turn_id}:{records:04d}"


def first_turn(sk: str) -> str | None:
    """Return the first turn of a segment; None if the key is not that of a segment."""
    return _rest_of(sk, "history:")


def turn_of(sk: str) -> str:
    """Return the turn of a sort key."""
    return sk.partition(":")[0]


def session_of(pk: str) -> str:
    """Return the session of the partition of its turns."""
    return pk.rpartition(":")[2]


def index_of(sk: str) -> int | None:
    """Return the index of a record in its turn's log; None for a header."""
    index = sk.partition(":")[2]
    return int(index) if index else None


def state_of(entry: Key) -> Key:
    """Return the key of a session's state, by that of its list entry."""
    return Key(f"{entry.pk}:{entry.sk}", "state")


def is_header(sk: str) -> bool:
    return ":" not in sk


def response_record(tenant: str, response_id: str, index: int) -> Key:
    """One entry of a response's log. Raises Conflict if the log is full."""
    if index > LAST_INDEX:
        raise Conflict(
            f"Response {response_id} has {index} records, the maximum. Create another response.",
            code="response_full",
        )
    return Key(response_records(tenant, response_id), f"{index:04d}")


def is_response_header(sk: str) -> bool:
    return sk == "meta"


def is_response_record(sk: str) -> bool:
    return sk.isdigit()


def is_response_lease(sk: str) -> bool:
    return sk == "lease"


def first_event(sk: str) -> int | None:
    """Return the first sequence number of a batch; None if the key is not that of a batch."""
    first = _rest_of(sk, "stream:")
    return None if first is None else int(first)


def conversation_item(tenant: str, conversation_id: str, item_id: str) -> Key:
    """An item, by its id without the prefix: a UUIDv7 in hex, and the item's place in its step."""
    found = ITEM.fullmatch(item_id)
    if found is None:
        raise NotFound("Item", item_id)
    made, place = found.group(1), found.group(2) or ""
    return Key(conversation_items(tenant, conversation_id), f"{ITEMS}{made}{order_of(place)}")


def split_registration(sk: str) -> tuple[str, str]:
    """Return the kind and the identifier in a sort key."""
    kind, _, identifier = sk.partition(":")
    return kind, identifier


def part_of(sk: str) -> str:
    """Return the id of the part of an upload with a sort key."""
    return sk.removeprefix("part:")


def is_file_id(value: str) -> bool:
    return is_name("file", value, "-")


def vector_index(tenant: str, store_id: str) -> str:
    """Return the name of the index of a vector store: 3 to 63 characters of a-z, 0-9 and - (S3 Vectors, "Indexes")."""
    return f"vs-{_store_digits.fill(store_id)[0]}-{index_owner(tenant)}"


def index_owner(tenant: str) -> str:
    """Return the part of a tenant in the names of its indexes. A policy of IAM compares it."""
    return sha256(checked_tenant(tenant).encode()).hexdigest()[:16]


def document_key(document_id: str) -> str:
    """Return the key of a document that has no file, by any id that its caller chose."""
    return f"doc-{short_hash(document_id)}"


def links_of(entity_key: Key) -> str:
    """Return the beginning of the sort keys of the links of an entity."""
    return f"{entity_key.sk}:"


def linked_document(sk: str) -> str:
    """Return the document of a link."""
    return sk.rpartition(":")[2]


def usage_shards(tenant: str, day: str) -> list[str]:
    """The partitions of a tenant's sums of a day (YYYY-MM-DD)."""
    return [f"{_usage_of_day(tenant, day)}.{shard}" for shard in range(SHARDS)]


def usage(tenant: str, day: str, shard: int, source: "UsageSource") -> Key:
    """The sum of a day and a source: an agent, a session, an API key or a caller without one, and a model."""
    caller = source.key_id if source.key_id or not source.subject else f":{short_hash(source.subject)}"
    # The letter is no digit of a hash, so a model is never taken for a caller.
    model = f":m{short_hash(source.model_id)}" if source.model_id else ""
    return Key(usage_shards(tenant, day)[shard], f"{source.agent_id}:{source.session_id}:{caller}{model}")


class PartialPlace(NamedTuple):
    """The place of the parts of a run's unfinished steps: a partition, and the prefix of the run in it.

    They are in partitions of their own, which no history is read from.
    """

    pk: str
    prefix: str

    def part(self, step_id: str, number: int) -> Key:
        """The part of a step with a number."""
        return Key(self.pk, f"{self.prefix}{step_id}:{number:06d}")

    def after_step(self, step_id: str | None) -> str:
        """Sorts after the parts of a step, and before those of later ones. Step ids sort by creation."""
        return f"{self.prefix}{step_id}:g" if step_id is not None else self.prefix or "0"

    @property
    def end(self) -> str:
        """Sorts after all parts of the run."""
        return f"{self.prefix}g"


def turn_partials(tenant: str, agent_id: str, session_id: str, turn_id: str) -> PartialPlace:
    turn_sk = turn(tenant, agent_id, session_id, turn_id).sk
    return PartialPlace(session_partials(tenant, agent_id, session_id), f"{turn_sk}:")


def response_partials(tenant: str, response_id: str) -> PartialPlace:
    return PartialPlace(_response_partials(tenant, response_id), "")


def is_storable(key: Key) -> bool:
    """Return whether DynamoDB accepts a key. No record has a longer one."""
    return len(key.pk.encode()) <= LONGEST_PK and len(key.sk.encode()) <= LONGEST_SK


def shard_of(value: str) -> int:
    """Return the shard of an id in hex."""
    return int(value[-1], 16) % SHARDS


def _rest_of(sk: str, prefix: str) -> str | None:
    return sk.removeprefix(prefix) if sk.startswith(prefix) else None
