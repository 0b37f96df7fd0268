"""Conversion of one document to text. It runs in the API's process, or in a process of its own for costly documents."""

from stint.dataclasses import dataclass
from stint.documents.mime_types import Kind


@dataclass(frozen=True, slots=True)
class Job:
    """How to convert a document's bytes: its kind, MIME type and charset, and the limits on pages and on the text."""

    kind: str
    """The name of a `Kind`."""
    essence: str
    """The MIME type, for messages."""
    charset: str | None
    pages: int
    """Maximum pages of a PDF."""
    characters: int
    """Maximum characters of the text."""
    text_bytes: int


def convert(job: Job, body: bytes) -> str:
    """Convert a document to plain text.

    Raises:
        Unreadable: it is damaged, does not match its type, or is too long.
    """
    from stint.documents.text import decode  # noqa: PLC0415 - few requests have documents

    if job.kind == Kind.pdf.name:
        from stint.documents.pdf import pdf_to_text  # noqa: PLC0415 - few documents are PDFs

        return pdf_to_text(body, job.pages, job.characters)
    if job.kind == Kind.office.name:
        from stint.documents.office import office_to_text  # noqa: PLC0415 - for the worker only

        return office_to_text(body, job.characters)
    if job.kind == Kind.html.name:
        from stint.documents.html import html_to_text  # noqa: PLC0415 - few documents are pages

        return html_to_text(decode(body, job.charset, job.essence, len(body)), job.characters)
    return decode(body, job.charset, job.essence, job.characters)
