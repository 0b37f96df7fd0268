"""HTML as readable text."""

import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser

from stint.documents.served import Unreadable

SKIPPED = frozenset({"template", "noscript", "svg", "math", "canvas", "object"})
RAW = ("script", "style", "iframe", "xmp")
SPACED = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table", "blockquote", "pre", "title"})
LINES = (
    "address article aside body caption dd details div dl dt fieldset figcaption figure footer form head header hr",
    "html li main nav section select summary tbody textarea tfoot thead tr",
)
BLOCKS = SPACED.union(*(names.split() for names in LINES))
LINK = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
BLANK = re.compile(r"[ \t\r\n\f\v]+")
RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])[^>]*>", re.IGNORECASE) for name in RAW}
MARKUP = re.compile(
    rf"<(?:(?P<comment>!--)|(?P<declaration>[!?])|(?P<raw>{'|'.join(RAW)})(?=[\s/>])|/?[a-z])", re.IGNORECASE
)
TAG = re.compile(r"""</?[a-z](?:[^>"']++|"[^"]*+"|'[^']*+')*+>""", re.IGNORECASE)
LONGEST_TAG = 1_000_000
"""Characters; images inside a page are long."""


class TextExtractor(HTMLParser):
    """Collects what a reader of a page would see: a line for each block, list items with dashes, cells with bars.

    A link is its text with the address behind it, an image its alternative text. What separates texts (`gap` newlines,
    a `space`, a `prefix`) is written when the next text comes.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.gap = 0
        self.space = False
        self.prefix = ""
        self.skipped_tag, self.skipped_depth = "", 0
        self.preformatted = 0
        self.link: tuple[str, int] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.skipped_depth:
            self.skipped_depth += tag == self.skipped_tag
            return
        if tag in SKIPPED:
            self.skipped_tag, self.skipped_depth = tag, 1
            return
        if tag in BLOCKS:
            self.break_line(tag)
        attributes = dict(attrs)
        match tag:
            case "br":
                self.gap = min(self.gap + 1, 2)
            case "li":
                self.prefix = "- "
            case "td" | "th":
                self.prefix = " | " if self.pieces and not self.gap else ""
            case "pre":
                self.preformatted += 1
            case "a":
                self.link = (attributes.get("href") or "", len(self.pieces))
            case "img":
                self.handle_data(f" {attributes.get('alt') or ''} ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take `<tag/>`: it has no content that would have to be skipped."""
        if not self.skipped_depth and tag not in SKIPPED:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self.skipped_depth:
            self.skipped_depth -= tag == self.skipped_tag
            return
        if tag == "a":
            self.end_link()
        elif tag == "pre":
            self.preformatted = max(self.preformatted - 1, 0)
        if tag in BLOCKS:
            self.break_line(tag)

    def handle_data(self, data: str) -> None:
        if self.skipped_depth:
            return
        text = data if self.preformatted else BLANK.sub(" ", data)
        if not text.strip() and not self.preformatted:
            self.space = self.space or bool(text)
            return
        if self.pieces:
            self.pieces.append("\n" * self.gap or ("" if self.prefix else " " * (self.space or text.startswith(" "))))
        self.pieces += [self.prefix, text if self.preformatted else text.strip()]
        self.gap, self.prefix, self.space = 0, "", text.endswith(" ")

    def end_link(self) -> None:
        if self.link is None:
            return
        (href, start), self.link = self.link, None
        said = "".join(self.pieces[start:]).strip(" \n-|")
        if LINK.match(href) and said and said not in (href, href.partition(":")[2]):
            self.pieces.append(f" ({href.strip()})")

    def break_line(self, tag: str) -> None:
        if self.prefix != "- ":  # the dash of an item waits for its text, whatever that is in
            self.gap, self.prefix = max(self.gap, 2 if tag in SPACED else 1), ""
        self.space = False


def html_to_text(html: str, until: float) -> str:
    """Turn a page into readable text; scripts, styles and markup are dropped, entities decoded.

    Raises:
        Unreadable: the monotonic clock reached `until`.
    """
    extractor = TextExtractor()
    for token in tokens(html):
        if time.monotonic() >= until:
            raise Unreadable("reading its HTML takes too long: send its text")
        extractor.feed(token)
    extractor.close()
    return "".join(extractor.pieces).strip()


def tokens(html: str) -> Iterator[str]:
    """Divide a page into texts and whole tags, without comments, declarations and scripts.

    html.parser alone would read unfinished tags and comments again and again, in quadratic time.
    """
    place = 0
    while found := MARKUP.search(html, place):
        yield html[place : found.start()].replace("<", "&lt;")
        if found["comment"]:
            place = behind(html, "-->", found.end() - 2)  # <!--> is one
        elif found["declaration"]:
            place = behind(html, ">", found.end())
        elif name := found["raw"]:
            end = RAW_ENDS[name.lower()].search(html, found.end())
            place = end.end() if end else len(html)
        elif tag := TAG.match(html, found.start(), found.start() + LONGEST_TAG):
            yield tag[0]
            place = tag.end()
        else:
            yield "&lt;"
            place = found.start() + 1
    yield html[place:].replace("<", "&lt;")


def behind(html: str, end: str, place: int) -> int:
    """Find where something ends; what has no end reaches to the end of the page."""
    found = html.find(end, place)
    return len(html) if found < 0 else found + len(end)
