"""The form of a trace: whether it has contents, and how they and the document are kept within bounds.

A document that is too large is made again with shorter contents, then without any, and then with fewer spans: who looks
at a long run needs its times and tokens first. Texts are redacted before they are cut, because a cut secret is no
longer recognized.
"""

from collections.abc import Callable

from stint.dataclasses import dataclass
from stint.domain.known_secrets import redact
from stint.domain.traces import TraceDocument

CUT = "…"
"""The end of a text that was cut."""

UNLIMITED = 1 << 40


@dataclass(frozen=True, slots=True)
class TraceForm:
    """The form of a document. `service` is the name of the service that has run."""

    service: str
    characters: tuple[int, ...]
    """Maximum characters of the contents of an attribute, in the order in which they are tried."""
    most_bytes: int
    """Maximum bytes of the document."""
    clean: Callable[[str], str] = str
    """Redacts a text."""

    def fit(self, make: Callable[[int], TraceDocument], stored_bytes: int) -> TraceDocument:
        """Return the document that `make` makes with the most characters, 0 for none, that is within the bounds.

        `stored_bytes` is the size of the stored run. A larger one is not made whole, which would take its memory again.
        """
        for characters in (*self.characters, 0):
            if characters == UNLIMITED and stored_bytes > self.most_bytes:
                continue
            document = make(characters)
            if len(document.to_json()) <= self.most_bytes:
                return document
        while len(document.spans) > 1 and len(document.to_json()) > self.most_bytes:
            del document.spans[len(document.spans) // 2 :]
        return document


def make_shown_form(service: str) -> TraceForm:
    """Return the form of traces that callers read: with contents, up to 16 MiB."""
    return TraceForm(service, (UNLIMITED, 65_536, 16_384, 4_096, 1_024), 16 << 20)


def make_sent_form(service: str, *, content: bool) -> TraceForm:
    """Return the form of traces that are sent.

    X-Ray takes 5 MB of a request, and 200 KB of a span.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-OTLPEndpoint.html
    """
    return TraceForm(service, (8_192, 1_024) if content else (), 4_500_000, redact)


class CutTexts:
    """Cuts the texts of one attribute, which have so many characters together."""

    def __init__(self, characters: int, clean: Callable[[str], str]) -> None:
        self.left, self.clean = characters, clean

    def cut(self, text: str) -> str:
        """Return a text as far as there is room."""
        text = self.clean(text)
        kept, self.left = text[: self.left], max(self.left - len(text), 0)
        return kept if len(kept) == len(text) else kept + CUT
