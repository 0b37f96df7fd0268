"""The keys of stored chat completions, beside those in `stint.store.keys`."""

from stint.domain.errors import NotFound
from stint.domain.ids import is_name
from stint.store.keys import SHARDS, Key, checked_tenant, shard_of

KIND = "Chat completion"


def chat_completions(tenant: str) -> list[str]:
    """The shards of a tenant's completions. Each completion is one record."""
    return [f"{checked_tenant(tenant)}#chat_completion.{shard}" for shard in range(SHARDS)]


def chat_completion(tenant: str, completion_id: str) -> Key:
    return Key(chat_completions(tenant)[shard_of(_checked(completion_id))], completion_id)


def chat_completion_blobs(tenant: str, completion_id: str, *, expires: bool = False) -> str:
    return f"{'expiring' if expires else 'kept'}/{checked_tenant(tenant)}/chat_completions/{_checked(completion_id)}/"


def _checked(completion_id: str) -> str:
    """Accept only ids in a key, so that no text from outside can address another record."""
    if not is_name("chatcmpl", completion_id):
        raise NotFound(KIND, completion_id)
    return completion_id
