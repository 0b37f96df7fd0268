import datetime
import re
import sys
from collections.abc import Callable
from io import BytesIO
from zipfile import ZipFile

import pytest
from tests.unit.documents.office_files import (
    docx_of,
    make_docx,
    make_pptx,
    make_xlsx,
    make_zip,
    mark_encrypted,
    move_part,
    replace_parts,
    xlsx_of,
    xlsx_of_strings,
)

from stint.documents.office import office_to_text
from stint.documents.served import Unreadable

MOST = 100_000
BILLION = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)
EXTERNAL = '<!DOCTYPE x [<!ENTITY secret SYSTEM "file:///etc/hostname">]>'


def merged(count: int) -> str:
    return "<mergeCells>" + '<mergeCell ref="A1:XFD1048576"/>' * count + "</mergeCells>"


def inline(runs: int) -> str:
    string = f"<is>{'<r><t>a</t></r>' * runs}</is>"
    return f"<sheetData><row><c t='inlineStr'>{string}</c></row></sheetData>"


def test_paragraphs_and_tables_of_a_document_are_in_order() -> None:
    data = make_docx("First one.", "Second one.", table=[["Name", "Age"], ["Ada", "36"]])

    assert office_to_text(data, MOST) == "First one.\n\nSecond one.\n\nName | Age\nAda | 36\n\nafter the table"


def test_runs_tabs_breaks_and_fields_of_a_document_are_joined() -> None:
    body = (
        "<w:p><w:pPr><w:tabs><w:tab w:val='left'/></w:tabs></w:pPr><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t></w:r>"
        "<w:hyperlink><w:r><w:t>, link</w:t></w:r></w:hyperlink><w:r><w:br/><w:t>next</w:t></w:r>"
        "<w:r><w:instrText>PAGE</w:instrText></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
        "<w:sdt><w:sdtContent><w:p><w:r><w:t>control</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    )

    assert office_to_text(docx_of(body), MOST) == "one\ttwo, link\nnext\n\ncontrol"


def test_text_boxes_are_read_once() -> None:
    mc = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    box = "<w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent>"
    choice = f"<mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
    body = f"<w:p><w:r><mc:AlternateContent {mc}>{choice}</mc:AlternateContent></w:r></w:p>"

    assert office_to_text(docx_of(body), MOST) == "boxed"


def test_footnotes_follow_the_text() -> None:
    w = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{kind}" Target="notes.xml"/></Relationships>'
    )
    note = f'<w:footnotes xmlns:w="{w}"><w:footnote><w:p><w:r><w:t>a note</w:t></w:r></w:p></w:footnote></w:footnotes>'
    parts = {"word/_rels/document.xml.rels": relations, "word/notes.xml": note}

    assert office_to_text(replace_parts(make_docx("text"), parts), MOST) == "text\n\na note"


def test_slides_have_their_titles_texts_and_notes_in_order() -> None:
    data = make_pptx(("One", "text of one", "say hello"), ("Two", "text of two", ""))

    assert office_to_text(data, MOST) == "One\n\ntext of one\n\nsay hello\n\nTwo\n\ntext of two"


def test_sheets_are_lines_of_their_values() -> None:
    day = datetime.date(2026, 11, 22)
    data = make_xlsx({"Prices": [["item", "price", None, "since"], ["tea", 1.5, None, day], [], ["=1+1"]], "Empty": []})

    assert office_to_text(data, MOST) == "# Prices\nitem | price | since\ntea | 1.5 | 2026-11-22 00:00:00"


def test_formatted_strings_are_read_without_their_hints() -> None:
    string = "<r><rPr><b/></rPr><t>bo</t></r><r><t>ld</t></r><rPh sb='0' eb='1'><t>hint</t></rPh>"
    cells = f"<c t='inlineStr'><is>{string}</is></c><c t='s'><v>0</v></c><c t='s'><v>1</v></c>"
    strings = f"<si>{string}</si><si><t xml:space='preserve'> plain </t></si>"

    data = xlsx_of_strings(strings, f"<sheetData><row>{cells}</row></sheetData>")

    assert office_to_text(data, MOST) == "# Sheet\nbold | bold |  plain"


def test_a_sheet_is_read_whatever_the_name_of_its_part() -> None:
    data = move_part(make_xlsx({"S": [["x"]]}), "xl/worksheets/sheet1.xml", "xl/worksheets/sheet1.bin")

    assert office_to_text(data, MOST) == "# S\nx"


@pytest.mark.parametrize("sheet", ["<sheetData/>", "<sheetData><row><c><v>1</v></c></row></sheetData>"])
def test_a_part_that_many_sheets_name_is_read_once(sheet: str) -> None:
    with ZipFile(BytesIO(xlsx_of(sheet))) as archive:
        workbook = archive.read("xl/workbook.xml").decode()
    [named] = re.findall("<sheet .*?/>", workbook)

    data = replace_parts(xlsx_of(sheet), {"xl/workbook.xml": workbook.replace(named, named * 100)})

    if "row" in sheet:
        assert office_to_text(data, MOST) == "# Sheet\n1"
    else:
        with pytest.raises(Unreadable, match="has no text"):
            office_to_text(data, MOST)


def calls_of(data: bytes) -> int:
    """Return the number of calls of Python functions, and of steps of generators, that reading a file takes."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        office_to_text(data, MOST)
    finally:
        sys.setprofile(None)
    return calls


CELL = "<row><c><v>1</v></c></row>"
FAR = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


@pytest.mark.parametrize(
    ("plain", "costly", "most"),
    [
        (f"<sheetData>{CELL}</sheetData>", f"<sheetData>{CELL}{FAR}</sheetData>", 50),
        (f"<sheetData>{CELL}</sheetData>", f"<sheetData>{CELL}</sheetData>" + merged(1_000), 3_000),
        (inline(1), inline(1_000), 10_000),
    ],
    ids=("a distant row", "merged cells", "runs"),
)
def test_gaps_and_formats_cost_little(plain: str, costly: str, most: int) -> None:
    office_to_text(xlsx_of(plain), MOST)

    assert calls_of(xlsx_of(costly)) - calls_of(xlsx_of(plain)) < most


@pytest.mark.parametrize("encoding", ["UTF-7", "utf-7", "HZ", "cp037"])
def test_xml_in_an_encoding_in_which_tags_cannot_be_counted_is_refused(encoding: str) -> None:
    with ZipFile(BytesIO(make_docx("text"))) as archive:
        markup = archive.read("word/document.xml").decode()
    declaration, end, body = markup.partition("?>")
    declaration = re.sub("encoding='.*?'|encoding=\".*?\"", f"encoding='{encoding}'", declaration)
    hidden = body.replace("<", "+ADw-") if encoding.lower() == "utf-7" else body
    written = (declaration + end + hidden).encode("cp037" if encoding == "cp037" else "ascii")

    with pytest.raises(Unreadable, match="neither UTF-8 nor UTF-16"):
        office_to_text(replace_parts(make_docx("text"), {"word/document.xml": written}), MOST)


def test_xml_in_utf_16_is_read() -> None:
    with ZipFile(BytesIO(make_docx("text"))) as archive:
        markup = archive.read("word/document.xml").decode()
    written = re.sub("encoding=.UTF-8.", "encoding='UTF-16'", markup).encode("utf-16")

    assert office_to_text(replace_parts(make_docx("text"), {"word/document.xml": written}), MOST) == "text"


def test_text_over_the_limit_is_refused() -> None:
    for data in (make_docx("x" * 200), make_pptx(("x" * 200, "", "")), make_xlsx({"S": [["x" * 200]]})):
        with pytest.raises(Unreadable, match="more than 100 characters") as caught:
            office_to_text(data, 100)
        assert caught.value.code == "document_too_large"


@pytest.mark.parametrize(
    ("data", "message", "code"),
    [
        (make_docx(), "the DOCX has no text", "unreadable_document"),
        (make_docx("x")[:-30], r"the file is invalid \(BadZipFile\)", "unreadable_document"),
        (make_docx("x")[:2000], "is invalid", "unreadable_document"),
        (mark_encrypted(make_docx("x")), "is encrypted: remove its password", "unreadable_document"),
        (make_zip({"a.txt": b"x"}), "is a ZIP archive", "unsupported_document"),
        (make_zip({"[Content_Types].xml": b"<Types/>"}), "neither DOCX nor PPTX nor XLSX", "unsupported_document"),
        (
            make_zip({"[Content_Types].xml": b"application/vnd.ms-word.document.macroEnabled.main+xml"}),
            "files with macros",
            "unsupported_document",
        ),
        (docx_of("<w:p>"), r"the DOCX is invalid \(XMLSyntaxError\)", "unreadable_document"),
        (docx_of("<w:p>" * 300 + "</w:p>" * 300), r"the DOCX is invalid", "unreadable_document"),
        (xlsx_of("<sheetData>"), r"the XLSX is invalid \(ParseError\)", "unreadable_document"),
        (replace_parts(make_docx("x"), {"word/document.xml": b""}), "the DOCX is invalid", "unreadable_document"),
        (lambda: make_zip({f"{n}": b"" for n in range(10_001)}), "10,000 parts", "document_too_large"),
        (lambda: make_zip({"a": bytes(150_000_001)}), "more than 150,000,000 bytes", "document_too_large"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(
    data: bytes | Callable[[], bytes], message: str, code: str
) -> None:
    data = data if isinstance(data, bytes) else data()
    with pytest.raises(Unreadable, match=message) as caught:
        office_to_text(data, MOST)

    assert caught.value.code == code


@pytest.mark.parametrize("make", [docx_of, xlsx_of])
@pytest.mark.parametrize(("prolog", "entity"), [(BILLION, "&i;"), (EXTERNAL, "&secret;")])
def test_entities_are_not_expanded(make: Callable[[str, str], bytes], prolog: str, entity: str) -> None:
    paragraph = f"<w:p><w:r><w:t>x{entity}</w:t></w:r></w:p>"
    row = f"<sheetData><row><c t='inlineStr'><is><t>x{entity}</t></is></c></row></sheetData>"
    data = make(paragraph if make is docx_of else row, prolog)

    if make is docx_of and prolog is EXTERNAL:
        assert office_to_text(data, MOST) == "x"
    else:
        with pytest.raises(Unreadable, match="is invalid"):
            office_to_text(data, MOST)
