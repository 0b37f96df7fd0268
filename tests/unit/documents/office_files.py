"""Builders of files of Office."""

from collections.abc import Iterable, Mapping
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

from docx import Document
from openpyxl import Workbook
from pptx import Presentation
from pptx.util import Inches

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def make_docx(*paragraphs: str, table: Iterable[Iterable[str]] = ()) -> bytes:
    document = Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    rows = [list(row) for row in table]
    if rows:
        cells = document.add_table(len(rows), len(rows[0]))
        for row, texts in zip(cells.rows, rows, strict=True):
            for cell, text in zip(row.cells, texts, strict=True):
                cell.text = text
        document.add_paragraph("after the table")
    written = BytesIO()
    document.save(written)
    return written.getvalue()


def make_pptx(*slides: tuple[str, str, str]) -> bytes:
    """Return a presentation of slides with a title, a text and notes."""
    presentation = Presentation()
    for title, text, notes in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        assert slide.shapes.title
        slide.shapes.title.text = title
        slide.shapes.add_textbox(Inches(1), Inches(2), Inches(3), Inches(1)).text_frame.text = text
        if notes:
            frame = slide.notes_slide.notes_text_frame
            assert frame
            frame.text = notes
    written = BytesIO()
    presentation.save(written)
    return written.getvalue()


def make_xlsx(sheets: Mapping[str, Iterable[Iterable[object]]]) -> bytes:
    workbook = Workbook()
    workbook.remove(workbook.active)
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
    written = BytesIO()
    workbook.save(written)
    return written.getvalue()


def replace_parts(data: bytes, parts: Mapping[str, bytes | str]) -> bytes:
    """Return a file with these parts instead of, or beside, its own."""
    written = BytesIO()
    with ZipFile(BytesIO(data)) as source, ZipFile(written, "w", ZIP_DEFLATED) as target:
        for name in source.namelist():
            if name not in parts:
                target.writestr(name, source.read(name))
        for name, content in parts.items():
            target.writestr(name, content)
    return written.getvalue()


def move_part(data: bytes, old: str, new: str) -> bytes:
    """Return a file in which a part has another name, and all parts that name it say so."""
    written = BytesIO()
    with ZipFile(BytesIO(data)) as source, ZipFile(written, "w", ZIP_DEFLATED) as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith((".rels", "[Content_Types].xml")):
                content = content.replace(old.encode(), new.encode())
            target.writestr(new if name == old else name, content)
    return written.getvalue()


def docx_of(body: str, prolog: str = "") -> bytes:
    """Return a document whose body is this markup."""
    markup = f'<?xml version="1.0"?>{prolog}<w:document {W}><w:body>{body}</w:body></w:document>'
    return replace_parts(make_docx(), {"word/document.xml": markup})


def xlsx_of(sheet: str, prolog: str = "") -> bytes:
    """Return a workbook whose sheet is this markup."""
    markup = f'<?xml version="1.0"?>{prolog}<worksheet {S}>{sheet}</worksheet>'
    return replace_parts(make_xlsx({"Sheet": []}), {"xl/worksheets/sheet1.xml": markup})


def xlsx_of_strings(strings: str, sheet: str = "<sheetData/>") -> bytes:
    """Return a workbook with these shared strings. The library that makes workbooks writes none."""
    data = xlsx_of(sheet)
    with ZipFile(BytesIO(data)) as archive:
        manifest = archive.read("[Content_Types].xml").decode()
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    part = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
    parts = {"[Content_Types].xml": manifest.replace("</Types>", part)}
    return replace_parts(data, parts | {"xl/sharedStrings.xml": f"<sst {S}>{strings}</sst>"})


def make_zip(parts: Mapping[str, bytes]) -> bytes:
    written = BytesIO()
    with ZipFile(written, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return written.getvalue()


def mark_encrypted(data: bytes) -> bytes:
    """Return an archive whose first part says that it is encrypted."""
    place = data.index(b"PK\1\2") + 8
    return data[:place] + bytes([data[place] | 1]) + data[place + 1 :]


def make_ole(*names: str) -> bytes:
    """Return the start of an OLE file with these streams."""
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + b"".join(name.encode("utf-16-le") for name in names)
