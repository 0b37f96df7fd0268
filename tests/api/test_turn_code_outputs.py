"""Files that code writes in a session, in its later calls."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session, turn
from tests.api.app_fixture import AppFixture
from tests.security.sandbox.conftest import Sandbox

from stint.tools.code_interpreter.provider import CodeInterpreter
from stint.tools.code_interpreter.runs import CodeRunner, RunFile, RunResult

RUN = 'call: code_interpreter {"code": "1"}'
CODE = ["builtin::code_interpreter"]
UseRunner = Callable[[CodeRunner], None]


@dataclass
class ScriptedRunner:
    """Records the files of each run, and writes and removes those of the next result."""

    results: list[tuple[dict[str, bytes], list[str]]]
    runs: list[dict[str, bytes]] = field(default_factory=list)

    async def run(self, _code: str, files: Mapping[str, bytes], /) -> RunResult:
        self.runs.append(dict(files))
        written, removed = self.results.pop(0) if self.results else ({}, [])
        made = [RunFile.of(name, content) for name, content in written.items()]
        return RunResult(stdout="done", files=made, removed=removed)


class SandboxRunner:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def run(self, code: str, files: Mapping[str, bytes], /) -> RunResult:
        given = [{"name": name, "content": base64.b64encode(content).decode()} for name, content in files.items()]
        return RunResult.model_validate(Sandbox(self.folder, isolated=True).run(code, files=given))


@pytest.fixture
def use_runner(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[UseRunner]:
    """Yield a function that sets what runs the code of agents."""
    changed = app_fixture.settings.model_copy(update={"sandbox_function": "sandbox"})
    monkeypatch.setattr(app_fixture, "settings", changed)

    def use(runner: CodeRunner) -> None:
        app_fixture.tool_providers = {"code-interpreter": CodeInterpreter(runner)}
        app_fixture.made.clear()

    yield use
    app_fixture.tool_providers = None
    app_fixture.made.clear()


def results_of(answer: dict[str, Any]) -> str:
    return json.dumps([step for step in answer["steps"] if step["step_type"] == "tool_execution"])


def objects_of(app_fixture: AppFixture, session: str) -> int:
    """Return the number of the session's objects in the bucket."""
    found = app_fixture.s3.list_objects_v2(Bucket=app_fixture.settings.bucket).get("Contents", [])
    return sum(session.rpartition("/")[2] in each["Key"] for each in found)


def test_files_stay_for_later_calls_of_the_turn_and_of_the_session(http: httpx.Client, use_runner: UseRunner) -> None:
    runner = ScriptedRunner([({"plot.png": b"1"}, []), ({"plot.png": b"2", "a.csv": b"x"}, []), ({}, ["a.csv"])])
    use_runner(runner)
    session = open_session(http, toolgroups=CODE)

    first = turn(http, session, f"{RUN}\nrepeat: 2", documents=[{"content": "text", "mime_type": "text/plain"}])
    turn(http, session, RUN)
    turn(http, session, RUN)

    given = {"document-1.txt": b"text"}
    later = given | {"plot.png": b"2"}
    assert runner.runs == [given, given | {"plot.png": b"1"}, later | {"a.csv": b"x"}, later]
    assert len(first["output_attachments"]) == 3
    assert "Later calls" not in results_of(first)


def test_files_of_calls_at_the_same_time_all_stay(http: httpx.Client, use_runner: UseRunner) -> None:
    runner = ScriptedRunner([({f"{number}.txt": b"x"}, []) for number in range(6)])
    use_runner(runner)
    session = open_session(http, toolgroups=CODE)

    turn(http, session, "\n".join([RUN] * 6))
    turn(http, session, RUN)

    assert sorted(runner.runs[-1]) == [f"{number}.txt" for number in range(6)]


def test_files_that_do_not_fit_are_named_and_those_of_the_user_stay(http: httpx.Client, use_runner: UseRunner) -> None:
    many = {f"{number}.txt": b"x" for number in range(20)}
    runner = ScriptedRunner([(many, [])])
    use_runner(runner)
    session = open_session(http, toolgroups=CODE)

    answer = turn(http, session, f"{RUN}\nrepeat: 2", documents=[{"content": "text", "mime_type": "text/plain"}])

    assert sorted(runner.runs[1]) == sorted(["document-1.txt", *[*many][:19]])
    assert "Later calls do not have these files, because they are too many or too large: 19.txt." in results_of(answer)


def test_names_that_no_code_could_be_given_are_not_kept(http: httpx.Client, use_runner: UseRunner) -> None:
    runner = ScriptedRunner([({"../a": b"x", ".b": b"x", "c\n": b"x", "d": b"x"}, [])])
    use_runner(runner)
    session = open_session(http, toolgroups=CODE)

    turn(http, session, f"{RUN}\nrepeat: 2")

    assert runner.runs[1] == {"d": b"x"}


def test_replaced_and_removed_files_leave_no_objects(
    http: httpx.Client, app_fixture: AppFixture, use_runner: UseRunner
) -> None:
    use_runner(ScriptedRunner([({"a": b"1", "b": b"1"}, []), ({"a": b"2"}, ["b"]), ({"a": b"2"}, [])]))
    session = open_session(http, toolgroups=CODE)

    counts = []
    for _ in range(3):
        turn(http, session, RUN)
        counts.append(objects_of(app_fixture, session))
    http.delete(session).raise_for_status()

    assert counts == [3, 2, 2]
    assert objects_of(app_fixture, session) == 0


def test_another_session_and_a_call_without_one_have_no_files(http: httpx.Client, use_runner: UseRunner) -> None:
    runner = ScriptedRunner([({"a": b"1"}, [])] * 2)
    use_runner(runner)

    turn(http, open_session(http, toolgroups=CODE), RUN)
    called = {"tool_name": "code_interpreter", "kwargs": {"code": "1"}}
    http.post("/v1/tool-runtime/invoke", json=called).raise_for_status()
    turn(http, open_session(http, toolgroups=CODE), RUN)

    assert runner.runs == [{}, {}, {}]


def test_code_in_the_sandbox_reads_what_earlier_code_wrote(
    http: httpx.Client, tmp_path: Path, use_runner: UseRunner
) -> None:
    use_runner(SandboxRunner(tmp_path))
    session = open_session(http, toolgroups=CODE)
    code = "import os; n = int(open('n').read()) if os.path.exists('n') else 0; open('n', 'w').write(f'{n + 1}')"
    run = f"call: code_interpreter {json.dumps({'code': code + '; print(n)'})}"

    answer = turn(http, session, f"{run}\nrepeat: 2")
    later = turn(http, session, run)

    assert "1\\n" in results_of(answer)
    assert "2\\n" in results_of(later)
