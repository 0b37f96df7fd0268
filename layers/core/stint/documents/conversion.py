"""One document as text, whatever kind it is. Runs in the process of the API or, for large ones, in one of its own."""

from dataclasses import dataclass

from stint.documents.html import html_to_text
from stint.documents.mime_types import Kind
from stint.documents.pdf import pdf_to_text
from stint.documents.text import decode


@dataclass(frozen=True, slots=True)
class Job:
    """What to make of a document's bytes: its kind, its MIME type and charset, the most pages and characters."""

    kind: str
    essence: str
    charset: str | None
    pages: int
    characters: int


def convert(job: Job, body: bytes) -> str:
    """Turn a document into plain text.

    Raises:
        Unreadable: it is broken, not what it is said to be, or too long.
    """
    if job.kind == Kind.pdf.name:
        return pdf_to_text(body, job.pages, job.characters)
    if job.kind == Kind.html.name:
        return html_to_text(decode(body, job.charset, job.essence, len(body)), job.characters)
    return decode(body, job.charset, job.essence, job.characters)
