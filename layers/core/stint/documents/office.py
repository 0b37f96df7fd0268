"""Conversion of DOCX, PPTX and XLSX to text. Macros, pictures, formulas and deleted text are left out.

A file of a few KB can take gigabytes: call it where CPU time and memory are limited (`stint.documents.process`).
"""

import re
import warnings
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from stint.documents.served import TOO_LARGE, Unreadable
from stint.documents.text_builder import CELL, LINE, PARAGRAPH, SPACE, TextBuilder

MOST_UNPACKED = 150_000_000
"""Maximum unpacked bytes of a file's parts together."""

MOST_PARTS = 10_000
MOST_TAGS = 5_000_000
"""Maximum tags of a file's XML together. Reading one takes 1 to 40 microseconds of CPU time, however well it packs."""

CHUNK = 262_144
DECLARED = re.compile(rb"""[^<]{0,8}<\?xml\s(?:[^>]*?\sencoding\s*=\s*["']([^"'>]*)|[^>]*\Z)""")
"""The encoding that a part declares: an empty one if the declaration does not end in the first chunk."""

ENCODINGS = re.compile(rb"utf-?8|utf-?16(?:le|be)?|(?:us-)?ascii|iso-8859-\d+|windows-125\d", re.I)
EBCDIC = "<?xml".encode("cp037")
LONGEST_MANIFEST = 1_000_000
MAIN_PARTS = {
    b"wordprocessingml.document.main+xml": "DOCX",
    b"presentationml.presentation.main+xml": "PPTX",
    b"spreadsheetml.sheet.main+xml": "XLSX",
}
NO_MEMORY = 2
"""The code of lxml's XMLSyntaxError if there is no memory left."""

NOTES = ("/footnotes", "/endnotes")


def office_to_text(data: bytes, most_characters: int) -> str:
    """Return the text of a DOCX, PPTX or XLSX file, whichever the content is.

    Raises:
        Unreadable: it is something else, broken, encrypted, has no text or too much.
        MemoryError: it takes more memory than there is.
    """
    name = "file"
    try:
        with ZipFile(BytesIO(data)) as archive:
            name = check_archive(archive)
            check_tags(archive)
        text = TextBuilder(most_characters)
        with warnings.catch_warnings(action="ignore"):  # of parts that the libraries do not know
            READERS[name](BytesIO(data), text)
    except (Unreadable, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a broken file leads the libraries into errors of every kind
        if getattr(error, "code", None) == NO_MEMORY:
            raise MemoryError from None
        raise Unreadable(f"the {name} is invalid ({type(error).__name__}): repair it, or send its text") from None
    if not (content := text.build()):
        raise Unreadable(f"the {name} has no text: send the text of its pictures")
    return content.encode(errors="replace").decode()


def check_archive(archive: ZipFile) -> str:
    """Return the format of a file. Raises Unreadable if it is none of the three, encrypted or too large."""
    parts = archive.infolist()
    # Before a part is read: the archive's directory tells encryption and sizes. `ZipFile` reads no more than these
    # sizes.
    if any(part.flag_bits & 1 for part in parts):
        raise Unreadable("the file is encrypted: remove its password")
    if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_UNPACKED:
        most = f"{MOST_UNPACKED:,} bytes in {MOST_PARTS:,} parts"
        raise Unreadable(f"the unpacked file has more than {most}: send a part, or its text", TOO_LARGE)
    if "[Content_Types].xml" not in archive.namelist():
        raise Unreadable("it is a ZIP archive: send the files in it one by one", "unsupported_document")
    with archive.open("[Content_Types].xml") as file:
        manifest = file.read(LONGEST_MANIFEST)
    if b"macroEnabled.main+xml" in manifest:
        raise Unreadable("files with macros are not read: save it without them", "unsupported_document")
    formats = [name for part, name in MAIN_PARTS.items() if part in manifest]
    # The manifest decides, as for Office itself. The name of the file may be another one.
    if len(formats) != 1:
        raise Unreadable("it is neither DOCX nor PPTX nor XLSX: save it as one of them", "unsupported_document")
    return formats[0]


def check_tags(archive: ZipFile) -> None:
    """Raise Unreadable if the XML of a file has too many tags. A closing tag counts, too.

    Any part may be XML, whatever its name. In the bytes of pictures there is about one `<` in 256.
    """
    tags = 0
    for part in archive.infolist():
        with archive.open(part) as file:
            chunk = file.read(CHUNK)
            check_encoding(chunk)
            while chunk:
                # Counted in the bytes, because parsing is what it is to prevent. An encoding in which `<` is not this
                # byte was refused.
                tags += chunk.count(b"<")
                chunk = file.read(CHUNK)
        if tags > MOST_TAGS:
            raise Unreadable(f"it has more than {MOST_TAGS:,} tags of XML: send a part, or its text", TOO_LARGE)


def check_encoding(beginning: bytes) -> None:
    """Raise Unreadable if XML is in an encoding in which a tag may begin with other bytes than `<`, such as UTF-7.

    The format itself allows UTF-8 and UTF-16 only.
    """
    plain = beginning.replace(b"\0", b"")
    declared = DECLARED.match(plain)
    if plain.startswith(EBCDIC) or (declared and not ENCODINGS.fullmatch(declared[1] or b"")):
        raise Unreadable("its XML is neither UTF-8 nor UTF-16: save it with another program")


def read_docx(file: BytesIO, text: TextBuilder) -> None:
    from docx import Document  # noqa: PLC0415 - only the worker has it
    from docx.oxml.parser import parse_xml  # noqa: PLC0415

    document = Document(file)
    add_markup(document.element.body, text)
    for relation in document.part.rels.values():
        if relation.reltype.endswith(NOTES) and not relation.is_external:
            text.separate(PARAGRAPH)
            add_markup(parse_xml(relation.target_part.blob), text)


def read_pptx(file: BytesIO, text: TextBuilder) -> None:
    from pptx import Presentation  # noqa: PLC0415 - only the worker has it

    for slide in Presentation(file).slides:
        text.separate(PARAGRAPH)
        add_markup(slide.element, text)
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if notes is not None:
            text.separate(PARAGRAPH)
            text.add(notes.text)


def add_markup(root: Any, text: TextBuilder) -> None:
    """Add the text of an element of WordprocessingML or DrawingML: paragraphs, and rows of tables as lines."""
    from lxml.etree import iterwalk  # noqa: PLC0415 - only the worker has it

    rows = 0
    walk = iterwalk(root, events=("start", "end"), tag="{*}*")
    for event, element in walk:
        name = element.tag.rpartition("}")[2]
        if event == "start":
            rows += name == "tr"
            # `mc:AlternateContent` has its content twice.
            if name == "Fallback" or name.endswith("Pr"):  # the same text for older programs; properties
                walk.skip_subtree()
            continue
        match name:
            case "t":
                text.add(element.text or "")
            case "tab":
                text.add("\t")
            case "br" | "cr":
                text.add("\n")
            case "tc":
                text.separate(CELL)
            case "p":
                text.separate(SPACE if rows else PARAGRAPH)
            case "tr":
                rows -= 1
                text.separate(LINE)
            case "tbl":
                text.separate(PARAGRAPH)


def read_xlsx(file: BytesIO, text: TextBuilder) -> None:
    from stint.documents.xlsx import add_workbook  # noqa: PLC0415 - only the worker has its library

    add_workbook(file, text)


READERS = {"DOCX": read_docx, "PPTX": read_pptx, "XLSX": read_xlsx}
