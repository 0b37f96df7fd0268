"""Attachments of October 2024 as files of the code interpreter."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
from tests.api.app_fixture import AppFixture
from tests.october.client import OctoberClient, Refused

from stint.tools.code_interpreter.provider import CodeInterpreter
from stint.tools.code_interpreter.runs import RunFile, RunResult

TOOLS = [{"type": "code_interpreter", "enable_inline_code_execution": True}]
RUN = 'code_interpreter {"code": "1"}'


@dataclass
class Copier:
    """Records the files of each run, and returns the last one under another name."""

    runs: list[dict[str, bytes]] = field(default_factory=list)

    async def run(self, _code: str, files: Mapping[str, bytes], /) -> RunResult:
        self.runs.append(dict(files))
        return RunResult(stdout="done", files=[RunFile.of("copy.csv", list(files.values())[-1])])


@pytest.fixture
def copier(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[Copier]:
    changed = app_fixture.settings.model_copy(update={"sandbox_function": "sandbox"})
    monkeypatch.setattr(app_fixture, "settings", changed)
    made = Copier()
    app_fixture.tool_providers = {"code-interpreter": CodeInterpreter(made)}
    app_fixture.made.clear()
    yield made
    app_fixture.tool_providers = None
    app_fixture.made.clear()


def test_data_urls_and_plain_texts_reach_code_whose_files_stay(october: OctoberClient, copier: Copier) -> None:
    """In the original, they do not."""
    session = october.open_session(tools=TOOLS)
    attachments = [
        {"content": "Llamas live in Peru.", "mime_type": "text/plain"},
        {"content": "data:text/csv;base64,YSxiCjEsMg==", "mime_type": "text/csv"},
        {"content": {"uri": "data:application/zip;base64,UEsDBA=="}, "mime_type": "application/zip"},
        {"content": ["one", "two"], "mime_type": "text/markdown"},
    ]

    turn = october.say(session, RUN, attachments=attachments)[-1]["turn"]
    october.say(session, RUN)

    assert list(copier.runs[0]) == ["document-1.txt", "document-2.csv", "document-3.zip", "document-4.md"]
    assert list(copier.runs[0].values())[:3] == [b"Llamas live in Peru.", b"a,b\n1,2", b"PK\x03\x04"]
    assert copier.runs[1] == copier.runs[0] | {"copy.csv": b"one\ntwo"}
    [copy] = turn["output_attachments"]
    assert copy["mime_type"] == "text/csv"
    assert copy["content"].startswith("data:text/csv;base64,")


@pytest.mark.parametrize("content", ["http://169.254.169.254/latest", "file:///etc/passwd", "http://127.0.0.1:9/x"])
def test_an_attachment_from_an_address_that_may_not_be_called_is_refused(
    october: OctoberClient, copier: Copier, content: str
) -> None:
    session = october.open_session(tools=TOOLS)

    with pytest.raises(Refused) as refused:
        october.say(session, RUN, attachments=[{"content": {"uri": content}, "mime_type": "text/csv"}])

    assert (refused.value.status, copier.runs) == (400, [])
