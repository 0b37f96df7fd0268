"""Conversion of HTML to readable text, in linear time.

The tokens are those of https://html.spec.whatwg.org/multipage/parsing.html, found in one pass without backtracking.
html.parser rescans unfinished tags, comments and scripts, which takes quadratic time.
"""

import re
from html import unescape

from stint.documents.text import too_long

SKIPPED = frozenset({"template", "noscript", "svg", "math", "canvas", "object"})
RAW = frozenset({"script", "style", "iframe", "xmp", "noembed", "noframes"})
SPACED = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table", "blockquote", "pre", "title"})
LINES = (
    "address article aside body caption dd details div dl dt fieldset figcaption figure footer form head header hr",
    "html li main nav section select summary tbody textarea tfoot thead tr",
)
BLOCKS = SPACED.union(*(names.split() for names in LINES))
LINK = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
BLANK = re.compile(r"[ \t\r\n\f\v]+")
RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in RAW}
# Possessive quantifiers do not backtrack. An unclosed quote costs one search, because no quote follows it.
VALUE = r"""(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)"""
ATTRIBUTE = re.compile(rf"""([^\s/>][^\s/>=]*+)(?:\s*+=\s*+({VALUE})?)?""")
TAG = re.compile(rf"""<(/?)([a-z][^\s/>]*+)((?:[\s/]++|{ATTRIBUTE.pattern})*+)>""", re.IGNORECASE)
ZEROS = re.compile(r"(&#)0+(?=[0-9])|(&#[xX])0+(?=[0-9a-fA-F])")
LONG_NUMBER = re.compile(r"&#(?:[0-9]{8,}+|[xX][0-9a-fA-F]{7,}+);?")


class TextExtractor:
    """Collects the visible text of a page: a line for each block, list items with dashes, cells with bars.

    A link becomes its text and its address, an image its alternative text. Separators (`gap` newlines, a `space`, a
    `prefix`) are written when the next text arrives.
    """

    def __init__(self, most_characters: int) -> None:
        self.most_characters = most_characters
        self.pieces: list[str] = []
        self.characters = 0
        self.gap = 0
        self.space = False
        self.prefix = ""
        self.skipped_tag, self.skipped_depth = "", 0
        self.preformatted = 0
        self.link: tuple[str, int] | None = None

    def start_tag(self, tag: str, attributes: str) -> None:
        # Elements of the same name can be nested, and a skipped one ends with its own end tag only.
        if self.skipped_depth:
            self.skipped_depth += tag == self.skipped_tag and not attributes.endswith("/")
            return
        if tag in SKIPPED:
            self.skipped_tag, self.skipped_depth = tag, int(not attributes.endswith("/"))
            return
        if tag in BLOCKS:
            self.break_line(tag)
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
                self.link = (find_attribute(attributes, "href"), len(self.pieces))
            case "img":
                self.add_text(f" {find_attribute(attributes, 'alt')} ")

    def end_tag(self, tag: str) -> None:
        if self.skipped_depth:
            self.skipped_depth -= tag == self.skipped_tag
            return
        if tag == "a":
            self.end_link()
        elif tag == "pre":
            self.preformatted = max(self.preformatted - 1, 0)
        if tag in BLOCKS:
            self.break_line(tag)

    def add_text(self, data: str) -> None:
        """Add a text whose character references are already replaced."""
        if self.skipped_depth:
            return
        text = data if self.preformatted else BLANK.sub(" ", data)
        if not text.strip() and not self.preformatted:
            self.space = self.space or bool(text)
            return
        if self.pieces:
            self.append_piece("\n" * self.gap or ("" if self.prefix else " " * (self.space or text.startswith(" "))))
        self.append_piece(self.prefix)
        self.append_piece(text if self.preformatted else text.strip())
        self.gap, self.prefix, self.space = 0, "", text.endswith(" ")

    def append_piece(self, piece: str) -> None:
        self.pieces.append(piece)
        self.characters += len(piece)
        if self.characters > self.most_characters:
            raise too_long(self.most_characters)

    def end_link(self) -> None:
        if self.link is None:
            return
        (href, start), self.link = self.link, None
        said = "".join(self.pieces[start:]).strip(" \n-|")
        # An address that the link shows is not written twice.
        if LINK.match(href) and said and said not in (href, href.partition(":")[2]):
            self.pieces.append(f" ({href.strip()})")

    def break_line(self, tag: str) -> None:
        if self.prefix != "- ":  # the dash of an item is written with its text, whichever element that is in
            self.gap, self.prefix = max(self.gap, 2 if tag in SPACED else 1), ""
        self.space = False


def html_to_text(html: str, most_characters: int) -> str:
    """Return a page's readable text, without scripts, styles and markup. An unfinished tag is text.

    Raises:
        Unreadable: there are more than `most_characters`.
    """
    extractor = TextExtractor(most_characters)
    place = 0
    while (start := html.find("<", place)) >= 0:
        extractor.add_text(replace_references(html[place:start]))
        if html.startswith("<!--", start):
            place = find_end(html, "-->", start + 2)  # <!--> is a comment
        elif html.startswith(("<!", "<?"), start):
            place = find_end(html, ">", start)
        elif not html[start + 1 : start + 3].lstrip("/")[:1].isalpha():
            extractor.add_text("<")
            place = start + 1
        elif tag := TAG.match(html, start):
            place = take_tag(extractor, html, tag)
        else:
            # An unfinished tag: nothing after it can be found without searching the rest again for each `<`.
            place = start
            break
    extractor.add_text(replace_references(html[place:]))
    return "".join(extractor.pieces).strip()


def take_tag(extractor: TextExtractor, html: str, tag: re.Match[str]) -> int:
    """Process a tag, and return the position after it, or after the whole element if its content is not markup."""
    name = tag[2].lower()
    if tag[1]:
        extractor.end_tag(name)
    elif name in RAW:
        end = RAW_ENDS[name].search(html, tag.end())
        return find_end(html, ">", end.end()) if end else len(html)
    else:
        extractor.start_tag(name, tag[3])
    return tag.end()


def find_end(html: str, end: str, place: int) -> int:
    """Return the position after the next `end`, or the end of the page if there is none."""
    found = html.find(end, place)
    return len(html) if found < 0 else found + len(end)


def find_attribute(attributes: str, name: str) -> str:
    """Return the value of the first attribute with this name; empty if there is none."""
    for attribute in ATTRIBUTE.finditer(attributes):
        if attribute[1].lower() == name:
            return replace_references((attribute[2] or "").strip("\"'"))
    return ""


def replace_references(text: str) -> str:
    """Replace character references. Numbers that are not a character become U+FFFD."""
    if "&#" in text:  # Python refuses to convert numbers of more than 4,300 digits
        text = LONG_NUMBER.sub("\ufffd", ZEROS.sub(r"\1\2", text))
    return unescape(text)
