"""The code interpreter: a tool that runs the Python code of a model.

It is the one of agents (a response has `container.py`). The code is a model's, which a document may have misled,
so it runs in a place without network, credentials and state: the function `sandbox`, or AgentCore. A `CodeRunner` is
this place. Each call is a new process. What looks like state to the model are files: those of the session are given to
each run, and those that it writes are kept for the next.

Files that a run wrote are shown to the user as attachments even if they cannot be kept; the model is told which ones
later calls lack.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from stint.domain.errors import StoreUnavailable, ToolUnavailable
from stint.domain.inference import ToolSignature
from stint.tools.code_interpreter.files import media_type_of
from stint.tools.code_interpreter.runs import CodeRunner, RunFile, RunResult, check_code
from stint.tools.outcomes import attachment, data_url, failure, unknown_tool
from stint.tools.port import ATTACHMENTS, CallerSession, Invocation, Toolgroup, ToolOutcome

CODE_INTERPRETER = ToolSignature(
    name="code_interpreter",
    description=(
        "Run Python code. Each call is a new process: variables do not stay. Its current folder has the user's files "
        "and those of earlier calls: read them by their names. The result is what the code prints; files that it "
        "writes into the folder are shown to the user, and stay for later calls. There is no network."
    ),
    parameters={
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The code to run. Print what you need to see."}},
        "required": ["code"],
    },
)


class CodeInterpreter:
    """The tool `code_interpreter`. A registration needs no args."""

    def __init__(self, runner: CodeRunner) -> None:
        self._runner = runner

    async def check(self, _toolgroup: Toolgroup, /) -> None:
        """Accept any args; see the port."""

    def known_tools(self, _toolgroup: Toolgroup, _provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool; see the port."""
        return [CODE_INTERPRETER]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool, without a request."""
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, _toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Run the argument `code`; see the port."""
        if invocation.tool_name != CODE_INTERPRETER.name:
            return unknown_tool(invocation.tool_name, [CODE_INTERPRETER.name])
        code = invocation.arguments.get("code")
        if problem := check_code(code):
            return failure(problem)
        session = invocation.session
        files = await session.read_files() if session and session.read_files else {}
        run = await self._runner.run(str(code), files)
        # Kept first: the files of the session must be those that the result says.
        return read_run(run, await keep_files(run, session))


async def keep_files(run: RunResult, session: CallerSession | None) -> list[str]:
    """Keep the files of a run for later calls of its session, and return the names of those that are not kept.

    Raises:
        Interrupted: the session was deleted, or taken over by another request.
        ToolUnavailable: see `content_of`.
    """
    if session is None or session.write_files is None or not (run.files or run.removed):
        return []
    written = {file.name: content_of(file) for file in run.files}
    try:
        return [*await session.write_files(written, run.removed)]
    except StoreUnavailable:  # the user gets them as attachments
        return [*written]


def read_run(run: RunResult, unkept: Sequence[str] = ()) -> ToolOutcome:
    """Convert the result of a run for the model. Later calls do not have `unkept` files. Raises ToolUnavailable."""
    if run.refused is not None:
        return failure(run.refused)
    attachments = [describe(file) for file in run.files]
    metadata: dict[str, Any] = {ATTACHMENTS: attachments} if attachments else {}
    return ToolOutcome(content=write_result(run, unkept), metadata=metadata, error=run.ended_by is not None)


def describe(file: RunFile) -> Mapping[str, Any]:
    """Return a file as an attachment."""
    media_type = media_type_of(file.name)
    return attachment(data_url(content_of(file), media_type), media_type)


def content_of(file: RunFile) -> bytes:
    """Return the content of a file. Raises ToolUnavailable."""
    try:
        return base64.b64decode(file.content, validate=True)
    except binascii.Error:
        raise ToolUnavailable("The code interpreter returned a file in another form") from None


def write_result(run: RunResult, unkept: Sequence[str]) -> str:
    """Return a result in the form of Llama Stack's code interpreter, with the names of files."""
    status = "completed" if run.exit_code == 0 and run.ended_by is None else "error"
    parts = [status]
    parts += [f"[{name}]\n{text}\n[/{name}]" for name, text in (("stdout", run.stdout), ("stderr", run.stderr)) if text]
    parts += notes_of(run)
    if run.files:
        parts.append(f"Files for the user: {', '.join(file.name for file in run.files)}.")
    if unkept:
        parts.append(
            f"Later calls do not have these files, because they are too many or too large: {', '.join(unkept)}."
        )
    if run.omitted:
        parts.append(f"Not shown, because they are no plain files or too large: {', '.join(run.omitted)}.")
    return "\n".join(parts)


def notes_of(run: RunResult) -> list[str]:
    """Return how a run ended, unless it completed, and whether its output was cut."""
    notes = []
    if run.ended_by is not None:
        notes.append(f"The run was ended by {run.ended_by}.")
    elif run.exit_code:
        notes.append(f"The exit code is {run.exit_code}.")
    if run.truncated:
        notes.append("The output is longer than allowed: only its beginning is shown.")
    return notes
