"""Documents of turns as files of the code interpreter."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error, open_session, say, turn
from tests.api.app_fixture import AppFixture
from tests.security.sandbox.conftest import Sandbox
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.domain.inference import UserInput
from stint.tools.code_interpreter.provider import CodeInterpreter
from stint.tools.code_interpreter.runs import RunResult

RUN = 'call: code_interpreter {"code": "1"}'
CODE = ["builtin::code_interpreter"]


@dataclass
class RecordingRunner:
    """Records the files of each run."""

    runs: list[dict[str, bytes]] = field(default_factory=list)

    async def run(self, _code: str, files: Mapping[str, bytes], /) -> RunResult:
        self.runs.append(dict(files))
        return RunResult(stdout="done")


@pytest.fixture
def runner(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordingRunner]:
    """Yield a runner that agents with the code interpreter use. Documents of loopback may be fetched."""
    own = {"sandbox_function": "sandbox", "allowed_hosts": "127.0.0.1"}
    monkeypatch.setattr(app_fixture, "settings", app_fixture.settings.model_copy(update=own))
    made = RecordingRunner()
    app_fixture.tool_providers = {"code-interpreter": CodeInterpreter(made)}
    app_fixture.made.clear()
    yield made
    app_fixture.tool_providers = None
    app_fixture.made.clear()


def text(content: str, mime_type: str = "text/plain") -> dict[str, Any]:
    return {"content": content, "mime_type": mime_type}


def data(content: bytes, mime_type: str) -> dict[str, Any]:
    return {"content": {"uri": f"data:{mime_type};base64,{base64.b64encode(content).decode()}"}, "mime_type": mime_type}


def said(app_fixture: AppFixture) -> str:
    """Return what the user's messages told the model."""
    return "\n".join(str(each.content) for each in app_fixture.last_request.messages if isinstance(each, UserInput))


def test_documents_are_files_of_this_turn_and_of_later_ones(
    http: httpx.Client, app_fixture: AppFixture, runner: RecordingRunner
) -> None:
    session = open_session(http, model="recorded/m", toolgroups=CODE)

    turn(http, session, RUN, documents=[text("a,b\n1,2", "text/csv"), data(b"\x00\xff", "application/zip")])
    first = said(app_fixture)
    turn(http, session, RUN)
    turn(http, session, RUN, documents=[text("more"), text("a,b\n1,2", "text/csv")])

    table, archive = {"document-1.csv": b"a,b\n1,2"}, {"document-2.zip": b"\x00\xff"}
    assert runner.runs == [table | archive, table | archive, table | archive | {"document-1.txt": b"more"}]
    assert 'files of the user: "document-1.csv" (document 1), "document-2.zip" (document 2, whose' in first
    assert "a,b\n1,2" in first
    assert '"document-1.txt" (document 1), "document-1.csv" (document 2). It also has' in said(app_fixture)


def test_a_url_is_fetched_once_and_names_its_file(
    http: httpx.Client, app_fixture: AppFixture, runner: RecordingRunner
) -> None:
    long = b"year,rate\n" + b"2024,2.9\n" * 100_000  # more than a model gets as text
    pages = {"/a/..%2F..%2Fetc%2Fp%C3%A4%00ss.csv?key=1": long, "/.ssh/": b"\x89PNG"}

    with ScriptedHTTPServer(lambda request: Reply((pages[request.path],))) as server:
        documents = [{"content": {"uri": server.url + path}, "mime_type": ""} for path in pages]
        documents[0]["mime_type"] = "text/csv"
        session = open_session(http, model="recorded/m", toolgroups=CODE)
        turn(http, session, RUN, documents=documents)
        turn(http, session, RUN)

    assert sorted(request.path for request in server.requests) == sorted(pages)
    assert [list(run) for run in runner.runs] == [["pä_ss.csv", "ssh.json"]] * 2
    assert runner.runs[1] == {"pä_ss.csv": long, "ssh.json": b"\x89PNG"}
    assert len(said(app_fixture)) < 1_000


def test_a_url_that_is_not_allowed_is_no_file(http: httpx.Client, runner: RecordingRunner) -> None:
    session = open_session(http, toolgroups=CODE)
    documents = [{"content": {"uri": "http://169.254.169.254/latest/meta-data"}, "mime_type": "application/zip"}]

    refused = say(http, session, RUN, documents=documents)

    assert assert_error(refused, 400, "url_not_allowed")["param"] == "documents[0]"
    turn(http, session, RUN)
    assert runner.runs == [{}]


def test_later_files_take_the_place_of_the_oldest(
    http: httpx.Client, app_fixture: AppFixture, runner: RecordingRunner
) -> None:
    session = open_session(http, model="recorded/m", toolgroups=CODE)

    for start in (0, 12):
        turn(http, session, RUN, documents=[text(f"{start + each}") for each in range(12)])

    assert len(runner.runs[1]) == 20
    assert sorted(int(content) for content in runner.runs[1].values()) == list(range(4, 24))
    assert '"document-5.txt", ' in said(app_fixture)
    assert 'no longer there, because later ones need their place: "document-1.txt", "document-2.txt"' in said(
        app_fixture
    )


def test_documents_that_do_not_fit_are_named(
    http: httpx.Client, app_fixture: AppFixture, runner: RecordingRunner
) -> None:
    session = open_session(http, model="recorded/m", toolgroups=CODE)
    large = data(b"x" * 3_500_001, "application/zip")

    refused = say(http, session, RUN, documents=[large])
    turn(http, session, RUN, documents=[text(f"{each}") for each in range(21)])

    assert "3,500,000 bytes" in assert_error(refused, 400, "unsupported_document")["message"]
    assert len(runner.runs[0]) == 20
    assert "too many or too large: document 21." in said(app_fixture)


def test_files_are_deleted_with_their_session(
    http: httpx.Client, app_fixture: AppFixture, runner: RecordingRunner
) -> None:
    def stored() -> list[str]:
        """Return the keys of the session's objects."""
        pages = [
            app_fixture.s3.list_objects_v2(Bucket=app_fixture.settings.bucket, Prefix=f"{kind}/{app_fixture.tenant}/")
            for kind in ("kept", "ephemeral")
        ]
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
        return [key for key in keys if session.rpartition("/")[2] in key]

    session = open_session(http, toolgroups=CODE)
    turn(http, session, RUN, documents=[text("secret")])
    held = stored()

    http.delete(session).raise_for_status()

    assert (len(held), stored()) == (2, [])
    assert runner.runs == [{"document-1.txt": b"secret"}]


def test_without_a_code_interpreter_nothing_is_stored_and_other_types_are_refused(http: httpx.Client) -> None:
    session = open_session(http)

    refused = say(http, session, "say: hi", documents=[data(b"\x00", "application/zip")])

    assert_error(refused, 400, "unsupported_document")


def test_code_in_the_sandbox_reads_them(http: httpx.Client, app_fixture: AppFixture, tmp_path: Path) -> None:
    class SandboxRunner:
        async def run(self, code: str, files: Mapping[str, bytes], /) -> RunResult:
            given = [{"name": name, "content": base64.b64encode(content).decode()} for name, content in files.items()]
            return RunResult.model_validate(Sandbox(tmp_path, isolated=True).run(code, files=given))

    own = {"sandbox_function": "sandbox"}
    before = app_fixture.settings
    app_fixture.settings = before.model_copy(update=own)
    app_fixture.tool_providers = {"code-interpreter": CodeInterpreter(SandboxRunner())}
    app_fixture.made.clear()
    code = "rows = open('document-1.csv').read(); print(rows.upper()); open('out.txt', 'w').write('made')"
    try:
        session = open_session(http, toolgroups=CODE)
        answer = turn(
            http, session, f"call: code_interpreter {json.dumps({'code': code})}", documents=[text("a,b", "text/csv")]
        )
    finally:
        app_fixture.settings, app_fixture.tool_providers = before, None
        app_fixture.made.clear()

    assert "A,B" in json.dumps(answer["steps"])
    assert answer["output_attachments"] == [
        {"content": {"uri": f"data:text/plain;base64,{base64.b64encode(b'made').decode()}"}, "mime_type": "text/plain"}
    ]
