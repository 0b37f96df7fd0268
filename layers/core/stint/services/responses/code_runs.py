"""The runs of code of a response: the tool, their items, and the citations of the files that they wrote."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from stint.caller import end_users_of
from stint.dataclasses import dataclass, replace
from stint.documents.served import Originals
from stint.domain.content import TextContentItem, items_of
from stint.domain.errors import error_param
from stint.domain.limits import MAX_CODE_BYTES, MAX_CODE_FILES
from stint.domain.openai.code_interpreter import (
    AutoContainer,
    CodeImage,
    CodeInterpreterCall,
    CodeInterpreterTool,
    CodeLogs,
    CodeOutput,
)
from stint.domain.openai.parts import ContainerFileCitation, OutputText
from stint.domain.openai.stored_responses import ResponseHeader, ResponseSettings
from stint.domain.tools import ToolCall, ToolResponse
from stint.loop.plan import Plan
from stint.loop.toolbox import ServerTool
from stint.services.conversations.include import CODE_OUTPUTS
from stint.tools.port import CODE_INTERPRETER, CONTAINER_FILES, IMAGES, Toolgroup

if TYPE_CHECKING:  # few responses run code
    from stint.tools.code_interpreter.container import ContainerAccess
    from stint.tools.code_interpreter.runs import CodeRunner

NO_OUTPUTS = "The outputs are not stored in this conversation."


@dataclass(frozen=True, slots=True)
class CodeAccess:
    """The place that runs the code of a tenant's responses, and its containers."""

    runner: "CodeRunner"
    containers: "ContainerAccess"


async def code_interpreter(
    tool: CodeInterpreterTool, place: int, code: CodeAccess, settings: ResponseSettings, response_id: str
) -> ServerTool:
    """Return the tool of a response that runs code. A request that only counts tokens has no `response_id`.

    Raises:
        NotFound: there is no such container. The message names it.
        InvalidRequest: a file does not exist, or they are too large.
    """
    from stint.tools.code_interpreter.container import SIGNATURE, ContainerInterpreter  # noqa: PLC0415

    container_id = settings.container_id or id_of_container(tool, response_id)
    is_own = isinstance(tool.container, AutoContainer)
    is_new = isinstance(tool.container, AutoContainer) and settings.container_id is None
    file_ids = (tool.container.file_ids or []) if isinstance(tool.container, AutoContainer) and is_new else None
    users = end_users_of(settings.safety_identifier, settings.user) if response_id else []
    with error_param(f"tools[{place}].container{'.file_ids' if is_own else ''}"):
        await code.containers.check(container_id, file_ids, users)
    has_images = CODE_OUTPUTS in settings.include
    provider = ContainerInterpreter(
        code.runner, code.containers, container_id, file_ids, has_images=has_images, users=users
    )
    return ServerTool(SIGNATURE, Toolgroup(CODE_INTERPRETER, CODE_INTERPRETER), provider)


def find_container(settings: ResponseSettings, response_id: str) -> str:
    """Return the id of the container of a response; empty if it runs no code."""
    tools = (tool for tool in settings.tools if isinstance(tool, CodeInterpreterTool))
    return next((settings.container_id or id_of_container(tool, response_id) for tool in tools), "")


def containers_in(items: Iterable[object]) -> list[str]:
    """Return the ids of the containers in which code ran."""
    return [item.container_id for item in items if isinstance(item, CodeInterpreterCall)]


def new_originals(settings: ResponseSettings) -> Originals | None:
    """Return where to keep the files of an input for code; None if the response runs none."""
    runs_code = any(isinstance(tool, CodeInterpreterTool) for tool in settings.tools)
    return Originals(MAX_CODE_BYTES, MAX_CODE_FILES) if runs_code else None


async def open_container(
    plan: Plan, header: ResponseHeader, earlier: Sequence[str], originals: Originals | None
) -> Plan:
    """Return the plan of a response with a container that exists before its code runs, and note it in the header.

    It is the last one of `earlier` ones and the input's, if the response has none of its own and it is active. It has
    the files of the input. Without either, nothing is changed.

    Raises:
        NotFound: the container has expired, or was deleted.
        InvalidRequest: it has no place for the files.
        Conflict: other runs changed it all the time.
    """
    tool, earlier = plan.toolbox.server.get(CODE_INTERPRETER), [*earlier, *containers_in(header.input)]
    if originals is None or tool is None or not (earlier or originals.bodies):
        return plan
    from stint.tools.code_interpreter.container import ContainerInterpreter  # noqa: PLC0415

    if not isinstance(provider := tool.provider, ContainerInterpreter):
        return plan
    opened = await provider.open(earlier[-1:], originals.files)
    if opened is provider:
        return plan
    header.settings = header.settings.model_copy(update={"container_id": opened.container_id})
    server = {**plan.toolbox.server, CODE_INTERPRETER: replace(tool, provider=opened)}
    return replace(plan, toolbox=replace(plan.toolbox, server=server))


def id_of_container(tool: CodeInterpreterTool, response_id: str) -> str:
    """Return the id of a tool's container. A response's own one has the digits of the response's id."""
    return tool.container if isinstance(tool.container, str) else f"cntr_{response_id.partition('_')[2]}"


def open_run(call: ToolCall, container_id: str, next_id: Callable[[str], str]) -> CodeInterpreterCall | None:
    """Return the item of a run that starts; None if the model wrote something else than arguments."""
    if not isinstance(call.arguments, dict):
        return None
    code = call.arguments.get("code")
    return CodeInterpreterCall(
        id=next_id("ci"),
        status="in_progress",
        code=code if isinstance(code, str) else "",
        container_id=container_id,
    )


def finish_run(item: CodeInterpreterCall, response: ToolResponse, include: Iterable[str]) -> CodeInterpreterCall:
    """Return the item of a run that has ended."""
    failed = bool((response.metadata or {}).get("error"))
    outputs = outputs_of(response) if CODE_OUTPUTS in include else None
    return item.model_copy(update={"status": "failed" if failed else "completed", "outputs": outputs})


def outputs_of(response: ToolResponse) -> list[CodeOutput]:
    """Return what code printed, or why it did not run, and the images that it wrote."""
    texts = [item.text for item in items_of(response.content) if isinstance(item, TextContentItem)]
    logs = texts[:1] if len(texts) > 1 or (response.metadata or {}).get("error") else []
    images = (response.metadata or {}).get(IMAGES) or []
    return [*(CodeLogs(logs=text) for text in logs), *(CodeImage(url=url) for url in images)]


def logs_in(item: CodeInterpreterCall) -> str:
    """Return what code printed for the model, if the item has it."""
    if item.outputs is None:
        return NO_OUTPUTS
    return "\n".join(output.logs for output in item.outputs if isinstance(output, CodeLogs))


def files_of_run(response: ToolResponse) -> Mapping[str, str]:
    """Return the ids of the files that a run wrote, by their names."""
    found: Mapping[str, str] = (response.metadata or {}).get(CONTAINER_FILES) or {}
    return found


def cite_files(part: OutputText, files: Mapping[str, str], container_id: str) -> OutputText:
    """Return a text with a citation of each file at the first place that names it."""
    cited: Sequence[ContainerFileCitation] = [
        ContainerFileCitation(
            container_id=container_id,
            file_id=files[name],
            filename=name,
            start_index=place.start(),
            end_index=place.end(),
        )
        for name in files
        if (place := find_name(name, part.text)) is not None
    ]
    ordered = sorted(cited, key=lambda each: each.start_index)
    return part.model_copy(update={"annotations": [*part.annotations, *ordered]}) if ordered else part


def find_name(name: str, text: str) -> "re.Match[str] | None":
    """Return the first place of a file's name with an extension in a text, not inside of a longer name."""
    if "." not in name:
        return None
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text)
