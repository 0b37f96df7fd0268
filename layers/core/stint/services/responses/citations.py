"""Citations in a model's text: markers such as `<|file-123|>` become annotations, and are removed from the text.

The results of a file search name the marker of each file. A marker is removed with one space before it, so that
`in Peru <|file-123|>.` reads `in Peru.`, with an annotation whose index is 7. Of any other `<|...|>`, those that name a
file's id are removed without an annotation, because the model made them up, and the rest is text like any other.

docs/decisions.md, entry 14, has the reasons.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from stint.dataclasses import dataclass
from stint.domain.openai.parts import FileCitation, OutputText

LONGEST_NAME = 128
"""Maximum characters of a document's id that a marker can have."""
MARKER = re.compile(rf" ?<\|([^<>|\s]{{1,{LONGEST_NAME}}})\|>")
UNFINISHED = re.compile(rf"(?: |(?: ?<(?:\|(?:[^<>|\s]{{1,{LONGEST_NAME}}}\|?)?)?))\Z")
"""The end of a text that may be the beginning of a marker."""
FILE_ID = re.compile(r"file-\w+", re.ASCII)
LONGEST = LONGEST_NAME + 5


def can_be_cited(document_id: str) -> bool:
    """Return whether a document's id can be written as a marker."""
    return MARKER.fullmatch(marker_of(document_id)) is not None


def marker_of(document_id: str) -> str:
    return f"<|{document_id}|>"


@dataclass(slots=True)
class CitationParser:
    """Reads a text in pieces. `sources` has the names of the files that can be cited, by their ids.

    The end of a piece that may begin a marker is kept for the next one: 133 characters at most.
    """

    sources: Mapping[str, str]
    rest: str = ""
    length: int = 0

    def add(self, piece: str) -> Iterator[str | FileCitation]:
        """Return the texts and citations up to this piece, in their order."""
        text, start = self.rest + piece, 0
        for found in MARKER.finditer(text):
            name = found[1]
            if name not in self.sources and FILE_ID.fullmatch(name) is None:
                continue
            yield from self.pass_on(text[start : found.start()])
            start = found.end()
            if name in self.sources:
                yield FileCitation(index=self.length, file_id=name, filename=self.sources[name])
        unfinished = UNFINISHED.search(text, max(start, len(text) - LONGEST))
        end = unfinished.start() if unfinished else len(text)
        self.rest = text[end:]
        yield from self.pass_on(text[start:end])

    def finish(self) -> Iterator[str]:
        """Return the kept end of the text, which begins no marker."""
        yield from self.pass_on(self.rest)
        self.rest = ""

    def pass_on(self, text: str) -> Iterator[str]:
        if text:
            self.length += len(text)
            yield text


def cite(text: str, sources: Mapping[str, str]) -> OutputText:
    """Return a whole text without its markers, and with its annotations."""
    parser = CitationParser(sources)
    return join([*parser.add(text), *parser.finish()])


def cited_in(text: str, sources: Mapping[str, str]) -> dict[str, str] | None:
    """Return the sources that a text cites; None if the text has no markers that are removed."""
    names = [found[1] for found in MARKER.finditer(text)]
    if not any(name in sources or FILE_ID.fullmatch(name) for name in names):
        return None
    return {name: sources[name] for name in names if name in sources}


def join(pieces: Iterable[str | FileCitation]) -> OutputText:
    pieces = list(pieces)
    return OutputText(
        text="".join(piece for piece in pieces if isinstance(piece, str)),
        annotations=[piece for piece in pieces if isinstance(piece, FileCitation)],
    )
