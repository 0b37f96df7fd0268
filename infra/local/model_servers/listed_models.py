"""The models of the servers that a local cloud lists, so that errors about unknown ids can name the nearest one."""

import re
from collections.abc import Mapping

from infra.local.model_servers.advice import can_be_default, nearest
from infra.local.model_servers.check import Answer, Server

from stint.domain.llama_stack.registrations import ModelRegisterRequest
from stint.services.registry.near_models import MOST

# The default model and the scripted one are compared with an unknown id, too.
MOST_LISTED = MOST - 2
OTHER_WORK = re.compile(r"tts|whisper|transcribe|dall-e|image|moderation|realtime|audio|rerank")


def select_models(answers: Mapping[Server, Answer | None], default: str) -> tuple[str, ...]:
    """Return full ids for STINT_MODELS: those first that write, and of these those that resemble the default model.

    Each server gets an equal share of the list.
    """
    lists = {server: answer.models.ids for server, answer in answers.items() if answer and answer.models.ids}
    share = MOST_LISTED // len(lists) if lists else 0
    provider, _, wanted = default.partition("/")
    return tuple(
        f"{server.provider}/{each}"
        for server, ids in lists.items()
        for each in select_ids(server, ids, wanted if provider == server.provider else "", share)
    )


def select_ids(server: Server, ids: tuple[str, ...], wanted: str, count: int) -> list[str]:
    """Return at most so many ids of a server."""
    usable = [each for each in ids if each != wanted and can_be_listed(server.provider, each)]
    writing = [each for each in usable if not OTHER_WORK.search(each.lower())]
    others = [each for each in usable if OTHER_WORK.search(each.lower())]
    return [*nearest(wanted, writing, count), *nearest(wanted, others, count)][:count]


def can_be_listed(provider: str, model_id: str) -> bool:
    """Return whether a model may write, and the setting, which commas separate, can contain its id."""
    if "," in model_id or "*" in model_id or model_id != model_id.strip() or not can_be_default(model_id):
        return False
    try:
        ModelRegisterRequest(model_id=f"{provider}/{model_id}")
    except ValueError:
        return False
    return True
