"""The code interpreter of a response: runs of code in a container, whose files stay between them.

A container has no process that waits: it is a record of files. A run reads all of them, gives them to a new process,
and writes back what the code has changed. This is what a client of OpenAI's API sees of its containers, except that
variables do not stay.

    file_ids is None       the container exists: named by the client, or opened with files of the request
    file_ids is a list     a container of the response's own, which its first run makes, with these files

So a response that never runs code makes no container. Other runs may change the same container meanwhile, so `write`
gets the files that were given to this run, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from stint.dataclasses import dataclass, replace
from stint.domain.content import Content, TextContentItem
from stint.domain.inference import ToolSignature
from stint.tools.code_interpreter.files import media_type_of
from stint.tools.code_interpreter.provider import content_of, notes_of
from stint.tools.code_interpreter.runs import CodeRunner, RunResult, check_code
from stint.tools.outcomes import data_url, failure
from stint.tools.port import CODE_INTERPRETER, CONTAINER_FILES, IMAGES, Invocation, Toolgroup, ToolOutcome

MAX_IMAGE_BYTES = 1_000_000
"""Maximum bytes of the images of a call that are outputs of its item. All of them are files of the container."""

IMAGES_OF_OUTPUTS = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

SIGNATURE = ToolSignature(
    name=CODE_INTERPRETER,
    description=(
        "Run Python code. Each call is a new process, so variables do not stay. Files in the current folder stay and "
        "are shown to the user: read and write them by their names. The result is what the code prints. There is no "
        "network."
    ),
    parameters={
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The code to run. Print what you need to see."}},
        "required": ["code"],
    },
)


class ContainerAccess(Protocol):
    """The containers of a tenant."""

    async def check(self, container_id: str, file_ids: Sequence[str] | None, users: Sequence[str], /) -> None:
        """Check a container before code runs. `file_ids` of None name a container that exists.

        Raises:
            NotFound: there is no such container.
            InvalidRequest: a file does not exist, or they are too large.
        """
        ...

    async def open(
        self,
        container_id: str,
        earlier: Sequence[str],
        file_ids: Sequence[str] | None,
        files: Mapping[str, bytes],
        users: Sequence[str],
        /,
    ) -> str | None:
        """Return the container of a response that exists before its code runs, with `files`; None if there is none.

        It is an active one of `earlier` ones, with `file_ids`, else that with `files`. Without `file_ids` it exists.

        Raises:
            NotFound: the container has expired, or was deleted.
            InvalidRequest: it has no place for the files.
            Conflict: other runs changed it all the time.
        """
        ...

    async def read(self, container_id: str, file_ids: Sequence[str] | None, /) -> dict[str, bytes]:
        """Return the files of a container by their names. Raises NotFound."""
        ...

    async def write(
        self,
        container_id: str,
        given: Mapping[str, bytes],
        written: Mapping[str, bytes],
        removed: Sequence[str],
        /,
        *,
        new: bool,
        users: Sequence[str],
    ) -> tuple[dict[str, str], list[str]]:
        """Store the files of a run. Return their ids by their names, and the names of those over the limits.

        Raises:
            NotFound: the container has expired, or was deleted.
            Conflict: other runs changed it all the time.
        """
        ...


@dataclass(frozen=True, slots=True)
class ContainerInterpreter:
    """The tool of one response of end users. `file_ids` are the files of a container of its own, or None.

    `has_images`: images that the code writes are in the metadata, too.
    """

    runner: CodeRunner
    containers: ContainerAccess
    container_id: str
    file_ids: Sequence[str] | None
    has_images: bool = False
    users: Sequence[str] = ()

    async def open(self, earlier: Sequence[str], files: Mapping[str, bytes]) -> "ContainerInterpreter":
        """Return the tool with a container that exists before code runs, if an earlier one is active or `files` exist.

        Raises as `ContainerAccess.open`.
        """
        earlier = earlier if self.file_ids is not None else ()
        opened = await self.containers.open(self.container_id, earlier, self.file_ids, files, self.users)
        return self if opened is None else replace(self, container_id=opened, file_ids=None)

    async def check(self, _: Toolgroup, /) -> None:
        """Accept any toolgroup: it configures nothing."""

    def known_tools(self, _: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool; see the port."""
        return [SIGNATURE]

    async def list_tools(self, _: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool; see the port."""
        return [SIGNATURE]

    async def invoke(self, _: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Run the argument `code` with the container's files; see the port."""
        code = invocation.arguments.get("code")
        if problem := check_code(code):
            return failure(problem)
        given = await self.containers.read(self.container_id, self.file_ids)
        run = await self.runner.run(str(code), given)
        if run.refused is not None:
            return failure(run.refused)
        written = {file.name: content_of(file) for file in run.files}
        ids, omitted = await self.containers.write(
            self.container_id, given, written, run.removed, new=self.file_ids is not None, users=self.users
        )
        metadata: dict[str, Any] = {CONTAINER_FILES: ids} if ids else {}
        if self.has_images and (images := images_of(written)):
            metadata[IMAGES] = images
        return ToolOutcome(write_logs(run, ids, [*run.omitted, *omitted]), metadata, run.ended_by is not None)


def images_of(written: Mapping[str, bytes]) -> list[str]:
    """Return the data URLs of images, up to MAX_IMAGE_BYTES together."""
    images, room = [], MAX_IMAGE_BYTES
    for name, content in written.items():
        media_type = media_type_of(name)
        if media_type in IMAGES_OF_OUTPUTS and len(content) <= room:
            room -= len(content)
            images.append(data_url(content, media_type))
    return images


def write_logs(run: RunResult, ids: Mapping[str, str], omitted: Sequence[str]) -> Content:
    """Return a result for the model: what the code printed, and then how it ended and which files it wrote."""
    logs = run.stdout + ("\n" if run.stdout and run.stderr and not run.stdout.endswith("\n") else "") + run.stderr
    notes = notes_of(run) or ["The run is complete."]
    if ids:
        notes.append(f"Files for the user: {', '.join(ids)}. Name them exactly so in your answer.")
    if omitted:
        notes.append(f"Not kept, because they are no plain files, too many or too large: {', '.join(omitted)}.")
    return [*([TextContentItem(text=logs)] if logs else []), TextContentItem(text=" ".join(notes))]
