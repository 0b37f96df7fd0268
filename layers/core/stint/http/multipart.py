"""Bodies of type multipart/form-data, with bounded numbers and sizes of their parts.

python-multipart parses a form, and calls FormReader for each of its pieces. Starlette's parser uses it, too, but
accepts more. Here,

    a body with                                     is
    more than MAX_PARTS parts, MAX_HEADERS headers  400
    a field of more than MAX_FIELD_BYTES            400; files are bounded by the body of the request
    no last boundary                                400: it was cut on its way
    a name only in the form of RFC 5987             400: RFC 7578 forbids it, and the file would have no name
    several parts with one name                     the last part
    a path as the name of a file                    its last component

Browsers send a form to another origin without a preflight, unlike JSON, so FormRoute refuses forms of other sites.

docs/decisions.md, entry 81, has the reasons.
"""

import re
from collections.abc import Callable, Coroutine, Mapping, Set
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response

from stint.dataclasses import dataclass, field
from stint.domain.errors import InvalidRequest, UnsupportedMediaType
from stint.domain.openai.files import INVALID_NAME, name_of
from stint.http.requests import StrictRoute

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

FORM = "multipart/form-data"
MAX_PARTS = 32
MAX_FIELD_BYTES = 10_000
MAX_HEADERS = 8
"""Maximum headers of a part, which has three."""

MAX_HEADER_BYTES = 4_096

QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*+"')
EXTENDED = re.compile(rb";\s*+(name|filename)\*\d*+\*?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FormFile:
    """A file in a form. Its name is not a path."""

    filename: str
    content: bytes


@dataclass(slots=True)
class FormPart:
    """A part of a form while it is parsed."""

    headers: dict[bytes, bytes] = field(default_factory=dict)
    name: bytes = b""
    value: bytes = b""
    content: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class Form:
    """The fields and files of a form. Of several parts with the same name, the last one counts."""

    fields: dict[str, str] = field(default_factory=dict)
    files: dict[str, FormFile] = field(default_factory=dict)

    def field(self, name: str) -> str:
        """Return a field. Raises InvalidRequest if it is missing."""
        if name not in self.fields:
            raise InvalidRequest(f"The form has no field {name!r}. Add it.", param=name)
        return self.fields[name]

    def file(self, name: str) -> FormFile:
        """Return a file. Raises InvalidRequest if it is missing."""
        if name not in self.files:
            reason = "is not a file: its part has no filename" if name in self.fields else "is missing in the form"
            raise InvalidRequest(f"{name!r} {reason}. Send it as a file of multipart/form-data.", param=name)
        return self.files[name]


class FormRoute(StrictRoute):
    """A route that reads its body as a form. The body of another type is refused.

    Browsers send forms to any origin without a preflight (Fetch, "CORS-safelisted request-header"), so a page of
    another site is refused by its `sec-fetch-site`.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super(StrictRoute, self).get_route_handler()

        async def handle_form(request: Request) -> Response:
            self.name_lines(request)
            refuse_other_sites(request)
            return await handle(request)

        return handle_form


class FormOrJSONRoute(StrictRoute):
    """A route that reads its body as a form or as JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle_json, handle = super().get_route_handler(), super(StrictRoute, self).get_route_handler()

        async def handle_either(request: Request) -> Response:
            if not is_form(request):
                return await handle_json(request)
            self.name_lines(request)
            refuse_other_sites(request)
            return await handle(request)

        return handle_either


def is_form(request: Request) -> bool:
    """Return whether a request says that its body is a form."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM


def refuse_other_sites(request: Request) -> None:
    """Raise InvalidRequest if a browser sent the form from a page of another site."""
    allowed = request.app.state.read_settings().cors_origin
    origin = request.headers.get("origin", "")
    if request.headers.get("sec-fetch-site", "") == "cross-site" and allowed not in ("*", origin):
        raise InvalidRequest(
            f"Pages of {origin[:200]!r} may not send forms. Set STINT_CORS_ORIGIN to this origin.", param="origin"
        )


async def form_of(request: Request, known: Set[str]) -> Form:
    """Parse the body of a request. `known` has the names of its parts.

    Raises UnsupportedMediaType, and InvalidRequest also for a misspelled name.
    """
    form = parse_form(await request.body(), request.headers.get("content-type", ""))
    given = form.fields.keys() | form.files.keys()
    if not given <= known:
        from stint.http.unknown_fields import note_unknown_parts  # noqa: PLC0415 - few forms have any

        note_unknown_parts(given, known, request.scope)
    return form


def parse_form(body: bytes, content_type: str) -> Form:
    """Parse a form.

    Raises:
        UnsupportedMediaType: the content type is another one, or has no boundary.
        InvalidRequest: the form is malformed, or exceeds a limit.
    """
    # Only uploads need it.
    from python_multipart.exceptions import FormParserError  # noqa: PLC0415
    from python_multipart.multipart import MultipartParser, parse_options_header  # noqa: PLC0415

    kind, options = parse_options_header(content_type)
    if kind != FORM.encode() or not options.get(b"boundary"):
        found = f"is {content_type[:100]!r}" if content_type else "is missing"
        raise UnsupportedMediaType(
            f"The content type of the body {found}. Send a form of the type multipart/form-data with its boundary.",
            param="content-type",
        )
    reader = FormReader()
    try:
        parser = MultipartParser(
            options[b"boundary"],
            reader.callbacks(),
            max_header_count=MAX_HEADERS,
            max_header_size=MAX_HEADER_BYTES,
        )
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise InvalidRequest(f"The form is malformed: {str(error)[:200]}") from None
    if not reader.ended:
        raise InvalidRequest("The form is incomplete: its last boundary is missing. Send the whole body.")
    return reader.form


class FormReader:
    """Collects the parts of a form."""

    def __init__(self) -> None:
        self.form = Form()
        self.ended = False
        self._part = FormPart()
        self._count = 0

    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self.begin_part,
            "on_header_field": self.add_header_name,
            "on_header_value": self.add_header_value,
            "on_header_end": self.end_header,
            "on_part_data": self.add_content,
            "on_part_end": self.end_part,
            "on_end": self.end,
        }

    def begin_part(self) -> None:
        self._count += 1
        if self._count > MAX_PARTS:
            raise InvalidRequest(f"The form has more than {MAX_PARTS} parts.")
        self._part = FormPart()

    def add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._part.name += data[start:end]

    def add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._part.value += data[start:end]

    def end_header(self) -> None:
        self._part.headers[self._part.name.lower()] = self._part.value
        self._part.name = self._part.value = b""

    def add_content(self, data: bytes, start: int, end: int) -> None:
        self._part.content += memoryview(data)[start:end]

    def end_part(self) -> None:
        from python_multipart.multipart import parse_options_header  # noqa: PLC0415 - as above

        disposition = self._part.headers.get(b"content-disposition", b"")
        _, options = parse_options_header(disposition)
        refuse_extended(disposition, options)
        name = text_of(options.get(b"name", b""), "The name of a part")
        content = bytes(self._part.content)
        if b"filename" in options:
            self.form.files[name] = FormFile(filename_of(options[b"filename"]), content)
        elif len(content) > MAX_FIELD_BYTES:
            raise InvalidRequest(f"The field {name[:100]!r} has more than {MAX_FIELD_BYTES:,} bytes.", param=name[:100])
        else:
            self.form.fields[name] = text_of(content, f"The field {name[:100]!r}")

    def end(self) -> None:
        self.ended = True


def text_of(raw: bytes, subject: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{subject} is not valid UTF-8.") from None


def refuse_extended(disposition: bytes, options: Mapping[bytes, bytes]) -> None:
    """Raise InvalidRequest for a name or filename in the form of RFC 5987 or 2231 only, which RFC 7578 forbids."""
    for found in EXTENDED.finditer(QUOTED.sub(b'""', disposition)):
        plain = found[1].lower()
        if plain not in options:
            raise InvalidRequest(
                f"A part of the form has {found[0][1:].strip().decode()}, which forms do not have (RFC 7578, section "
                f'4.2). Send {plain.decode()}="...", without an asterisk and in UTF-8.',
                param="file",
            )


def filename_of(raw: bytes) -> str:
    """Return the last part of a file's name, which may be a path.

    Raises:
        InvalidRequest: it is empty or too long, or has control characters.
    """
    name = name_of(text_of(raw, "The file name"))
    if name is None:
        raise InvalidRequest(INVALID_NAME, param="file")
    return name
