"""The words of `make run` about its model servers, and the default model that follows from their lists.

Nothing of it ends the start: a server may be started later, and other models work without it.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from infra.local.model_servers.check import Answer, Server
from infra.local.model_servers.report import ModelReport

from stint.domain.llama_stack.registrations import check_identifier
from stint.tools.masking import mask_url

OPENAI = "OPENAI_BASE_URL"
SHOWN = 10
MOST_COMPARED = 500
EMBEDS = re.compile(r"embed|minilm|mpnet|paraphrase|labse|(?:^|[/_-])(?:bge|gte|e5|uae|voyage)-")
"""In the ids of models that embed texts. A server does not list what its models do."""


def advise(
    answers: Mapping[Server, Answer | None], default: str, *, is_chosen: bool, stand_in: str = ""
) -> ModelReport:
    """Return what to say about the answers of servers. The default model is the user's choice, or not.

    `stand_in` is the model of the example if there is a warning about the default model or its server.
    """
    report = ModelReport(default)
    for server, answer in answers.items():
        if not is_chosen and server.provider == "openai" and not server.is_of_openai:
            report = choose_only(report, server, answer)
        lines, warning = describe(server, answer, report.default, is_chosen=is_chosen)
        warnings = [f"Warning: {warning}"] if warning else []
        report = replace(report, lines=(*report.lines, *lines), warnings=(*report.warnings, *warnings))
        if warning and report.default.startswith(f"{server.provider}/"):
            report = replace(report, stand_in=stand_in)
    return report


def choose_only(report: ModelReport, server: Server, answer: Answer | None) -> ModelReport:
    """Return a report whose default model is the only one of a server, if there is only one that writes."""
    ids = (answer and answer.models.ids) or ()
    usable = [each for each in ids if can_be_default(each)]
    if len(usable) != 1:
        return report
    aside = " that writes" if len(ids) > 1 else ""
    note = f" (the only model{aside} of {server.shown}; STINT_DEFAULT_MODEL selects another)"
    return replace(report, default=f"openai/{usable[0]}", note=note)


def describe(server: Server, answer: Answer | None, default: str, *, is_chosen: bool) -> tuple[list[str], str]:
    """Return lines about the models of a server, and a warning or an empty text."""
    if answer is None and server.has_secret:
        return [f"{server.provider}/ models are not checked: the key of {server.shown} is in a secret"], ""
    if answer is None:
        return [], f"{server.shown} needs a key.\n  Set {server.key_setting}. {until_then(server)}"
    if answer.models.ids is None:
        return describe_failure(server, answer, is_chosen=is_chosen)
    ids = answer.models.ids
    if not ids:
        advice = f"Load one, with Ollama by `ollama pull MODEL`. {until_then(server)}"
        return [], f"{server.shown} has no model.\n  {advice}"
    provider, _, wanted = default.partition("/")
    is_default = provider == server.provider
    near = nearest(wanted if is_default else "", ids)
    warning = describe_missing(server, default, near, is_chosen=is_chosen)
    return [list_models(server, near, len(ids))], "" if not is_default or has_model(wanted, ids) else warning


def list_models(server: Server, near: Sequence[str], count: int) -> str:
    more = f" and {count - len(near)} more" if count > len(near) else ""
    return f"{server.shown} has {', '.join(f'{server.provider}/{each}' for each in near)}{more}"


def describe_missing(server: Server, default: str, near: Sequence[str], *, is_chosen: bool) -> str:
    """Return a warning about a default model that a server does not list."""
    role = "which STINT_DEFAULT_MODEL names" if is_chosen else "the default model"
    best = next(filter(can_be_default, near), None)
    advice = "None of its models can be the default. Load one that writes, with Ollama by `ollama pull MODEL`."
    if best:
        advice = f"Choose one of its models, for example:\n  {command_with(server, best)}"
    return f"{server.shown} does not list {default}, {role}.\n  {advice}"


def describe_failure(server: Server, answer: Answer, *, is_chosen: bool) -> tuple[list[str], str]:
    """Return lines and a warning about a server that has sent no list of models."""
    models = answer.models
    if models.about_key and not answer.better:
        return [], describe_refusal(server, models.status)
    if not models.status:
        return [], describe_silence(server, models.fault, is_chosen=is_chosen)
    if answer.better or models.is_other:
        return [], describe_address(server, answer.better)
    if 300 <= models.status < 400:
        place = f" to {mask_url(models.location)}" if models.location else ""
        told = f"{server.shown} redirects GET /models{place}, which Stint does not follow"
        return [], f"{told}.\n  Correct {server.url_setting}. {until_then(server)}"
    reason = models.fault or f"GET {server.shown}/models returns {models.status}"
    return [f"{server.provider}/ models cannot be checked: {reason}"], ""


def describe_silence(server: Server, fault: str, *, is_chosen: bool) -> str:
    """Return a warning about a server that does not answer."""
    told = f"the model server {server.shown} cannot be reached: {fault}.\n "
    if server.is_of_openai:
        return f"{told} Check the network and its proxy (HTTPS_PROXY). {until_then(server)}"
    again = "" if is_chosen else "\n  Then run `make run` again, which looks for its model."
    return f"{told} Start it, or correct {server.url_setting}. {until_then(server)}{again}"


def describe_address(server: Server, better: str) -> str:
    """Return a warning about an address at which there is no list of models. A better one may have it."""
    told = f"{server.shown} answers, but not as a model server"
    if not better:
        told += f": GET {server.shown}/models returns no list of models"
        return f"{told}.\n  Correct {server.url_setting}, which usually ends in /v1. {until_then(server)}"
    missing = ": /v1 is missing" if better == f"{server.base_url}/v1" else ""
    if server.url_setting == OPENAI and mask_url(better) == better:
        return f"{told}{missing}. Use {better}:\n  OPENAI_BASE_URL={shlex.quote(better)} make run"
    return f"{told}{missing}.\n  Set {server.url_setting} to {mask_url(better)}. {until_then(server)}"


def describe_refusal(server: Server, status: int) -> str:
    """Return a warning about a key that is refused or missing."""
    if not server.key:
        return f"{server.shown} needs a key ({status}).\n  Set {server.key_setting}. {until_then(server)}"
    if not status:
        told = f"the key in {server.key_setting} has characters that cannot be sent to {server.shown}"
        return f"{told}.\n  Set it again. {until_then(server)}"
    told = f"{server.shown} refuses the key in {server.key_setting} ({status})"
    if status == 403:
        return f"{told}.\n  Check it. If it lacks only the right to list models, {server.provider}/ models work."
    return f"{told}.\n  Set it to a valid key. {until_then(server)}"


def until_then(server: Server) -> str:
    return f"Until then, {server.provider}/ models fail, and others work."


def command_with(server: Server, model: str) -> str:
    """Return the command that selects a default model. A password in the address is not printed."""
    shows_url = server.url_setting == OPENAI and not server.is_of_openai and server.shown == server.base_url
    address = f"OPENAI_BASE_URL={shlex.quote(server.base_url)} " if shows_url else ""
    return f"{address}STINT_DEFAULT_MODEL={shlex.quote(f'{server.provider}/{model}')} make run"


def nearest(wanted: str, ids: Sequence[str], count: int = SHOWN) -> list[str]:
    """Return some of the ids, those first that resemble the wanted one."""
    if not wanted or not count:
        return list(ids[:count])
    return get_close_matches(wanted, ids[:MOST_COMPARED], count, cutoff=0.0)


def has_model(wanted: str, ids: Sequence[str]) -> bool:
    """Return whether a server that lists these ids has a model.

    Ollama takes an id without its tag, Gemini's API one without `models/`, and OpenRouter one with a variant. A proxy
    such as LiteLLM lists patterns.
    """
    names = {wanted, f"{wanted}:latest", f"models/{wanted}", wanted.rpartition(":")[0]}
    return any(each in names or (each.endswith("*") and wanted.startswith(each[:-1])) for each in ids)


def can_be_default(model_id: str) -> bool:
    """Return whether a model probably writes, and has an id that a path can contain.

    LM Studio always lists a model that embeds, too, and llama.cpp may list a path with `..`.
    """
    try:
        check_identifier(f"openai/{model_id}")
    except ValueError:
        return False
    return not EMBEDS.search(model_id.lower())
