"""The listed models of a local cloud, and the model of its example, with model servers on loopback."""

import json
import socket
from collections.abc import Mapping

import pytest
from infra.local.environment import shell_settings
from infra.local.model_servers.report import ModelReport, report_models
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.settings import read_settings


async def report(shell: Mapping[str, str]) -> ModelReport:
    return await report_models(shell_settings(shell), shell)


async def report_on(*ids: str, **shell: str) -> ModelReport:
    listed = json.dumps({"data": [{"id": each} for each in ids]}).encode()
    with ScriptedHTTPServer(lambda _: Reply((listed,))) as server:
        return await report({"OPENAI_BASE_URL": f"{server.url}/v1", **shell})


def named(server: ScriptedHTTPServer, *providers: str) -> str:
    return json.dumps([{"id": each, "base_url": f"{server.url}/v1"} for each in providers])


async def test_the_models_of_a_server_are_listed_with_its_prefix() -> None:
    found = await report_on("a", "b:latest", "vendor/c")

    assert set(found.listed) == {"openai/a", "openai/b:latest", "openai/vendor/c"}


async def test_models_that_the_shell_lists_are_not_replaced() -> None:
    assert (await report_on("a", "b", STINT_MODELS="openai/c")).listed == ()


async def test_no_more_models_are_listed_than_are_compared_with_an_unknown_one() -> None:
    found = await report_on(*(f"vendor/{number}" for number in range(400)), "gpt-4.1-nano")

    assert len(found.listed) == 48
    assert found.listed[0] == "openai/gpt-4.1-nano"


async def test_servers_share_the_list() -> None:
    listed = json.dumps({"data": [{"id": f"m-{number}"} for number in range(100)]}).encode()
    with ScriptedHTTPServer(lambda _: Reply((listed,))) as server:
        found = await report({"OPENAI_BASE_URL": f"{server.url}/v1", "STINT_PROVIDERS": named(server, "lab", "far")})

    assert [sum(each.startswith(f"{name}/") for each in found.listed) for name in ("openai", "lab", "far")] == [16] * 3


async def test_models_that_write_are_listed_before_others_and_those_that_embed_are_not() -> None:
    others = [f"{kind}-{number}" for kind in ("tts", "whisper", "dall-e", "omni-moderation") for number in range(20)]
    found = await report_on("text-embedding-3-small", *others, "gpt-4o", "gpt-4o-audio-preview", "gpt-4.1")

    assert set(found.listed[:2]) == {"openai/gpt-4o", "openai/gpt-4.1"}
    assert "openai/text-embedding-3-small" not in found.listed


async def test_a_model_that_embeds_can_still_be_named_for_texts() -> None:
    """The functions would refuse to embed texts with a model that is listed as one that writes."""
    embedding = ["bge-m3:latest", "BAAI/bge-small", "all-minilm", "thenlper/gte-large", "multilingual-e5-large"]
    found = await report_on(*embedding, "gpt-4o", "llama3.2")

    assert set(found.listed) == {"openai/gpt-4o", "openai/llama3.2"}


async def test_only_ids_that_a_setting_and_a_path_can_contain_are_listed() -> None:
    found = await report_on("a,b", "../x", "x/", " y", "z ", "vendor/*", "$(id)", "ok", "ok2")

    assert set(found.listed) == {"openai/$(id)", "openai/ok", "openai/ok2"}
    settings = read_settings({"STINT_DEFAULT_MODEL": "openai/ok", "STINT_MODELS": ",".join(found.listed)})
    assert settings.model_ids == ["openai/ok", *found.listed]


async def test_the_example_names_the_default_model() -> None:
    assert (await report({})).example == "scripted/demo"
    assert (await report_on("only")).example == "openai/only"


@pytest.mark.parametrize("reply", [Reply(status=401), Reply((b"<html>",)), Reply((b'{"data":[]}',)), Reply(status=307)])
async def test_the_example_names_the_scripted_model_if_the_server_has_a_fault(reply: Reply) -> None:
    with ScriptedHTTPServer(lambda _: reply) as server:
        found = await report({"OPENAI_BASE_URL": f"{server.url}/v1"})

    assert (found.default, found.example) == ("openai/gpt-4.1-mini", "scripted/demo")


async def test_the_example_names_the_scripted_model_if_the_default_is_missing_or_unreachable() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # no one listens, and no other process gets the port
        silent = await report({"OPENAI_BASE_URL": f"http://127.0.0.1:{closed.getsockname()[1]}/v1"})

    assert silent.example == (await report_on("a", "b")).example == "scripted/demo"


async def test_the_example_names_the_default_model_if_there_is_no_scripted_one() -> None:
    assert (await report_on("a", "b", STINT_SCRIPTED_MODELS="false")).example == "openai/gpt-4.1-mini"


async def test_a_fault_of_another_server_leaves_the_example_as_it_is() -> None:
    with ScriptedHTTPServer(lambda _: Reply(status=401)) as strict:
        found = await report_on("only", STINT_PROVIDERS=named(strict, "strict"))

    assert len(found.warnings) == 1
    assert found.example == "openai/only"


async def test_a_server_whose_models_all_embed_is_told_to_load_one_that_writes() -> None:
    (warning,) = (await report_on("nomic-embed-text", "mxbai-embed-large")).warnings

    assert "\n  None of its models can be the default. Load one that writes, with Ollama by `ollama pull" in warning
