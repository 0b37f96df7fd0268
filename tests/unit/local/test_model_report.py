"""The words of `make run` about model servers, which are real HTTP servers on loopback."""

import json
import socket
from collections.abc import Iterator, Mapping

import pytest
from infra.local.environment import shell_settings
from infra.local.errors import LocalCloudError
from infra.local.model_servers import check as model_check
from infra.local.model_servers.report import ModelReport, report_models
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

KEY = "sk-hunter2-hunter2"


def model_list(*ids: object) -> Reply:
    return Reply((json.dumps({"object": "list", "data": [{"id": each} for each in ids]}).encode(),))


def answer(received: Received) -> Reply:
    """List two models at /v1/models only, as a server without another address does."""
    if received.path == "/v1/models":
        return model_list("qwen3:8b", "llama3.2:latest")
    return Reply((b"404 page not found",), 404, {"Content-Type": "text/plain"})


@pytest.fixture
def server() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(answer) as server:
        yield server


async def report(shell: Mapping[str, str]) -> ModelReport:
    return await report_models(shell_settings(shell), shell)


async def report_on(server: ScriptedHTTPServer, *replies: Reply, **shell: str) -> ModelReport:
    server.script(*replies)
    return await report({"OPENAI_BASE_URL": f"{server.url}/v1", **shell})


async def test_without_a_model_server_nothing_is_requested() -> None:
    assert await report({}) == ModelReport("scripted/demo")


@pytest.mark.parametrize(
    "ids", [("llama3.2:latest",), ("text-embedding-nomic", "llama3.2:latest"), ("../x", "llama3.2:latest")]
)
async def test_the_only_model_that_writes_is_the_default(server: ScriptedHTTPServer, ids: tuple[str, ...]) -> None:
    found = await report_on(server, model_list(*ids))

    assert (found.default, found.warnings) == ("openai/llama3.2:latest", ())
    aside = " that writes" if len(ids) > 1 else ""
    assert f"(the only model{aside} of {server.url}/v1; STINT_DEFAULT_MODEL selects another" in (found.note or "")
    assert [each.path for each in server.requests] == ["/v1/models"]


async def test_a_chosen_model_stays_the_default(server: ScriptedHTTPServer) -> None:
    found = await report_on(server, model_list("other"), STINT_DEFAULT_MODEL="scripted/demo")

    assert (found.default, found.note, found.warnings) == ("scripted/demo", None, ())
    assert found.lines == (f"{server.url}/v1 has openai/other",)


@pytest.mark.parametrize("chosen", ["", "openai/qwen3:4b"])
async def test_of_several_models_one_is_to_be_chosen_by_a_command(server: ScriptedHTTPServer, chosen: str) -> None:
    shell = {"STINT_DEFAULT_MODEL": chosen} if chosen else {}
    found = await report_on(server, **shell)

    (warning,) = found.warnings
    assert found.default == (chosen or "openai/gpt-4.1-mini")
    assert f"does not list {found.default}" in warning
    assert ("which STINT_DEFAULT_MODEL names" in warning) == bool(chosen)
    assert f"\n  OPENAI_BASE_URL={server.url}/v1 STINT_DEFAULT_MODEL=openai/" in warning
    assert warning.endswith(" make run")
    assert "openai/llama3.2:latest" in found.lines[0]
    if chosen:
        assert "STINT_DEFAULT_MODEL=openai/qwen3:8b make run" in warning


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("qwen", "qwen"),
        ("qwen", "qwen:latest"),
        ("gemini-2.5", "models/gemini-2.5"),
        ("vendor/x:free", "vendor/x"),
        ("vendor/x", "vendor/*"),
    ],
)
async def test_a_model_that_the_server_has_under_a_longer_or_shorter_id_is_no_warning(
    server: ScriptedHTTPServer, model: str, listed: str
) -> None:
    found = await report_on(server, model_list(listed, "other"), STINT_DEFAULT_MODEL=f"openai/{model}")

    assert found.warnings == ()


async def test_ten_ids_are_shown_and_those_first_that_resemble_the_default(server: ScriptedHTTPServer) -> None:
    ids = [*(f"vendor/model-{number}" for number in range(30)), "gpt-4.1-mini"]
    (line,) = (await report_on(server, model_list(*ids))).lines

    assert line.startswith(f"{server.url}/v1 has openai/gpt-4.1-mini, openai/vendor/")
    assert line.count("openai/") == 10
    assert line.endswith(" and 21 more")


async def test_ids_of_a_hostile_server_reach_neither_the_terminal_nor_the_shell(server: ScriptedHTTPServer) -> None:
    found = await report_on(server, model_list("a\x1b[31m", "x" * 10_000, "‮b", 7, None, "m; rm -rf x", "$(id)"))

    (warning,) = found.warnings
    assert "\x1b" not in repr(found)
    assert found.lines == (f"{server.url}/v1 has openai/$(id), openai/m; rm -rf x",)
    assert warning.endswith(" STINT_DEFAULT_MODEL='openai/$(id)' make run")


@pytest.mark.parametrize("body", [b'{"object":"list","data":null}', b'{"data":[]}', b"[]"])
async def test_a_server_without_models_is_told_how_to_load_one(server: ScriptedHTTPServer, body: bytes) -> None:
    found = await report_on(server, Reply((body,)))

    assert f"{server.url}/v1 has no model.\n  Load one" in found.warnings[0]


async def test_a_bare_array_is_a_list(server: ScriptedHTTPServer) -> None:
    found = await report_on(server, Reply((b'[{"id":"one"}]',)))

    assert found.default == "openai/one"


async def test_a_server_that_cannot_be_reached_is_a_warning() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # no one listens, and no other process gets the port
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        found = await report({"OPENAI_BASE_URL": url})
        chosen = await report({"OPENAI_BASE_URL": url, "STINT_DEFAULT_MODEL": "openai/x"})

    assert found.default == "openai/gpt-4.1-mini"
    assert f"the model server {url} cannot be reached: connection refused.\n  Start it, or correct" in found.warnings[0]
    assert "run `make run` again" in found.warnings[0]
    assert "again" not in chosen.warnings[0]


async def test_a_silent_server_is_waited_for_until_the_time_is_over(
    server: ScriptedHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_check, "SECONDS", 0.2)

    found = await report_on(server, Reply(ending="hang", before=3600.0))

    assert "it did not answer in time" in found.warnings[0]


@pytest.mark.parametrize(
    ("path", "status"),
    [("", 404), ("", 200), ("/v1/chat/completions", 404), ("/api", 404), ("/v1/models", 405)],
)
async def test_a_wrong_path_is_told_with_the_right_address(server: ScriptedHTTPServer, path: str, status: int) -> None:
    server.script(Reply((b"<html>",), status, {"Content-Type": "text/html"}))
    (warning,) = (await report({"OPENAI_BASE_URL": f"{server.url}{path}/"})).warnings

    assert f"{server.url}{path} answers, but not as a model server" in warning
    assert (": /v1 is missing" in warning) == (path == "")
    assert warning.endswith(f"Use {server.url}/v1:\n  OPENAI_BASE_URL={server.url}/v1 make run")


async def test_an_address_with_v1_that_refuses_the_key_is_the_right_one(server: ScriptedHTTPServer) -> None:
    server.script(Reply(status=404), Reply(status=401))

    assert f"Use {server.url}/v1" in (await report({"OPENAI_BASE_URL": server.url})).warnings[0]


async def test_a_page_that_is_no_list_is_a_warning(server: ScriptedHTTPServer) -> None:
    for body in (b"<html>", b"7", b'{"data":7}', b'{"models":[]}', b'{"data":[{"name":"x"}]}', b"null", b"[" * 100_000):
        (warning,) = (await report_on(server, Reply((body,)), Reply((body,)))).warnings

        assert "returns no list of models.\n  Correct OPENAI_BASE_URL" in warning


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b"", "refuses the key in OPENAI_API_KEY (401).\n  Set it to a valid key."),
        (403, b"", "refuses the key in OPENAI_API_KEY (403).\n  Check it. If it lacks only the right to list"),
        (400, b'{"error":"Incorrect API key provided: %s"}' % KEY.encode(), "refuses the key in OPENAI_API_KEY (400)"),
    ],
)
async def test_a_refused_key_is_named_and_never_printed(
    server: ScriptedHTTPServer, status: int, body: bytes, says: str
) -> None:
    found = await report_on(server, Reply((body,), status), OPENAI_API_KEY=KEY)

    assert says in found.warnings[0]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "hunter2" not in repr(found)


async def test_a_missing_key_is_named(server: ScriptedHTTPServer) -> None:
    refused = await report_on(server, Reply(status=401))
    openai = await report({"STINT_DEFAULT_MODEL": "openai/gpt-5"})

    assert "needs a key (401).\n  Set OPENAI_API_KEY." in refused.warnings[0]
    assert "https://api.openai.com/v1 needs a key.\n  Set OPENAI_API_KEY." in openai.warnings[0]


async def test_a_key_that_cannot_be_sent_is_not_sent(server: ScriptedHTTPServer) -> None:
    found = await report_on(server, OPENAI_API_KEY="sk-hünter2")

    assert "the key in OPENAI_API_KEY has characters that cannot be sent" in found.warnings[0]
    assert server.requests == []
    assert "nter2" not in repr(found)


async def test_a_redirect_is_not_followed(server: ScriptedHTTPServer) -> None:
    with ScriptedHTTPServer(answer) as other:
        there = {"Location": f"{other.url}/v1/models"}
        found = await report_on(server, Reply(status=307, headers=there), OPENAI_API_KEY=KEY)

        assert f"redirects GET /models to {other.url}/v1/models, which Stint does not follow" in found.warnings[0]
        assert other.requests == []


@pytest.mark.parametrize("status", [404, 405, 501, 500, 429])
async def test_a_server_without_a_list_cannot_be_checked(server: ScriptedHTTPServer, status: int) -> None:
    found = await report_on(server, Reply(status=status))

    assert found.warnings == ()
    assert found.lines == (f"openai/ models cannot be checked: GET {server.url}/v1/models returns {status}",)


async def test_no_more_than_a_megabyte_is_read(server: ScriptedHTTPServer) -> None:
    found = await report_on(server, Reply((b" " * 600_000, b" " * 600_000), ending="hang"))

    assert found.warnings == ()
    assert "its list has more than 1,000,000 bytes" in found.lines[0]


async def test_a_server_behind_a_proxy_is_requested_through_it_and_one_on_this_machine_is_not(
    server: ScriptedHTTPServer,
) -> None:
    with ScriptedHTTPServer(lambda _: model_list("proxied")) as proxy:
        shell = {"HTTP_PROXY": proxy.url, "http_proxy": proxy.url}
        far = await report({"OPENAI_BASE_URL": "http://model.test/v1", **shell})
        near = await report_on(server, model_list("near"), **shell)

        assert (far.default, near.default) == ("openai/proxied", "openai/near")
        assert [each.path for each in proxy.requests] == ["http://model.test/v1/models"]


async def test_a_password_in_an_address_is_not_printed(server: ScriptedHTTPServer) -> None:
    url = server.url.replace("//", "//user:hunter2@")
    several = await report({"OPENAI_BASE_URL": f"{url}/v1"})
    elsewhere = await report({"OPENAI_BASE_URL": url})

    assert "STINT_DEFAULT_MODEL=openai/" in several.warnings[0]
    assert f"{server.url.partition('//')[2]}/v1" in elsewhere.warnings[0]
    assert "hunter2" not in repr([several, elsewhere])
    assert "user" not in repr([several, elsewhere])


async def test_named_servers_are_checked_by_their_own_settings(server: ScriptedHTTPServer) -> None:
    with ScriptedHTTPServer(lambda _: Reply(status=401)) as strict:
        servers = [
            {"id": "lab", "base_url": f"{server.url}/v1", "key_variable": "STINT_LAB_KEY"},
            {"id": "short", "base_url": server.url},
            {"id": "strict", "base_url": f"{strict.url}/v1", "key_variable": "STINT_STRICT_KEY"},
            {"id": "hidden", "base_url": f"{strict.url}/v1", "secret_arn": "arn:aws:secretsmanager:x"},
            {"id": "oregon", "kind": "bedrock", "region": "us-west-2"},
        ]
        keys = {"STINT_LAB_KEY": KEY, "STINT_STRICT_KEY": KEY}
        found = await report({"STINT_PROVIDERS": json.dumps(servers), "STINT_DEFAULT_MODEL": "lab/qwen3", **keys})

        assert len(strict.requests) == 1
    missing, short, refused = found.warnings
    assert f"{server.url}/v1 does not list lab/qwen3" in missing
    assert missing.endswith("\n  STINT_DEFAULT_MODEL=lab/qwen3:8b make run")
    assert f"/v1 is missing.\n  Set the base_url of provider 'short' in STINT_PROVIDERS to {server.url}/v1." in short
    assert "refuses the key in STINT_STRICT_KEY (401)" in refused
    assert [line.partition(":")[0] for line in found.lines[1:]] == ["hidden/ models are not checked"]
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize("url", ["127.0.0.1:11434/v1", "localhost:11434", "ftp://a/v1", "http://"])
def test_an_address_that_is_no_url_ends_the_start(url: str) -> None:
    with pytest.raises(LocalCloudError, match=r"OPENAI_BASE_URL is not a valid URL: .* http://127.0.0.1:11434/v1\."):
        shell_settings({"OPENAI_BASE_URL": url})
