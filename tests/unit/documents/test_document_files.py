import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from tests.unit.documents.office_files import (
    docx_of,
    make_docx,
    make_ole,
    make_pptx,
    make_xlsx,
    make_zip,
    move_part,
    xlsx_of,
    xlsx_of_strings,
)
from tests.unit.documents.pdf_files import make_encrypted, make_pdf

from stint.documents.files import InvalidFile, UnsupportedFile, extract_text, unescape_json
from stint.documents.limits import FILE_LIMITS, limits_for_file
from stint.domain.errors import InvalidRequest

ROOT = Path(__file__).parents[3]
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("content", "filename", "mime_type", "text"),
    [
        (b"plain", "a.txt", None, "plain"),
        (b"# Title\n\n* one", "a.md", "application/octet-stream", "# Title\n\n* one"),
        (b"a,b\r\n1,2\r\n", "a.csv", "application/vnd.ms-excel", "a,b\n1,2\n"),
        (b"<h1>Hi</h1><script>x</script><p>there", "a.html", "text/plain", "Hi\n\nthere"),
        (b'{"a": "\\u4eba\\u4eba \\ud83d\\ude42"}', "a.json", None, '{"a": "人人 🙂"}'),
        ("größe".encode("latin-1"), "a.txt", "text/plain; charset=iso-8859-1", "größe"),
        ("größe".encode("cp1252"), "a.txt", None, "größe"),
        ("größe".encode("utf-16"), "notes", None, "größe"),
        (b"def f(): pass", "a.py", "text/x-python", "def f(): pass"),
        (b"FROM scratch", "Dockerfile", "", "FROM scratch"),
        (b"x: 1", "config", "application/yaml", "x: 1"),
        (make_pdf("a pdf"), "a.pdf", "application/pdf", "a pdf"),
        (make_docx("a docx"), "a.docx", None, "a docx"),
        (make_pptx(("a pptx", "", "")), "a.pptx", None, "a pptx"),
        (make_xlsx({"S": [["a xlsx"]]}), "a.xlsx", "application/octet-stream", "# S\na xlsx"),
        (make_pdf("a pdf"), "a.txt", "text/plain", "a pdf"),
        (make_docx("a docx"), "", "not a MIME type", "a docx"),
    ],
)
async def test_files_become_text_by_content_then_name_then_type(
    content: bytes, filename: str, mime_type: str | None, text: str
) -> None:
    assert await extract_text(content, filename, mime_type) == text


@pytest.mark.parametrize(
    ("content", "filename", "mime_type", "message"),
    [
        (
            make_ole("WordDocument"),
            "a.doc",
            "application/msword",
            r"\.doc is not a supported format: save it as \.docx",
        ),
        (b"<p>really HTML", "a.doc", None, r"\.doc is not a supported format"),
        (make_docx("x"), "a.docm", None, r"\.docm is not a supported format"),
        (make_ole("Workbook"), "table", None, "old formats of Office"),
        (PNG, "a.png", "image/png", "'image/png' is not supported"),
        (PNG, "picture", None, "its type is unknown"),
        (b"\xff\xfb\x90", "a.mp3", "application/octet-stream", "its type is unknown"),
        (make_zip({"a.txt": b"x"}), "a.zip", "application/zip", "ZIP archive"),
    ],
)
async def test_files_of_other_types_are_unsupported(
    content: bytes, filename: str, mime_type: str | None, message: str
) -> None:
    with pytest.raises(UnsupportedFile, match=message) as caught:
        await extract_text(content, filename, mime_type)

    assert caught.value.code == "unsupported_file"
    assert repr(filename) in caught.value.message


@pytest.mark.parametrize(
    ("content", "filename", "message"),
    [
        (b"", "a.txt", "is empty"),
        (b" \n ", "a.txt", "has no text"),
        (PNG, "a.txt", "is not text"),
        (b"plain", "a.docx", "declared as DOCX, but its content is not"),
        (b"plain", "a.pdf", "the PDF is invalid"),
        (make_ole("EncryptedPackage", "x"), "a.docx", "is encrypted: remove its password"),
        (make_encrypted("x", "secret"), "a.pdf", "is encrypted: remove its password"),
        (make_docx("x")[:3000], "a.docx", "is invalid"),
        (b"word," * 2_500_001, "a.txt", r"5,000,002 tokens; at most 5,000,000"),
        (b"x" * 24_000_001, "a.txt", "more than 24,000,000 characters"),
        (b"x" * 50_000_001, "a.txt", "50,000,001 bytes; at most 50,000,000"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else str(value),
)
async def test_files_that_cannot_be_read_are_invalid(content: bytes, filename: str, message: str) -> None:
    with pytest.raises(InvalidFile, match=message) as caught:
        await extract_text(content, filename)

    assert caught.value.code == "invalid_file"


def zip_of_zeros(part: str, size: int, source: bytes) -> bytes:
    """Return a file with a part that unpacks to many lines, written piece by piece."""
    from io import BytesIO

    written = BytesIO()
    with ZipFile(BytesIO(source)) as old, ZipFile(written, "w", ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != part:
                new.writestr(name, old.read(name))
        with new.open(part, "w") as target:
            target.write(b"<x>")
            for _ in range(size // 1_000_000):
                target.write(b"<y/>" * 250_000)
            target.write(b"</x>")
    return written.getvalue()


@pytest.mark.parametrize(
    ("filename", "make"),
    [
        ("a.docx", lambda: zip_of_zeros("word/document.xml", 140_000_000, make_docx())),
        ("a.xlsx", lambda: sheet_of('<c t="inlineStr"><is><t>1</t></is></c>', 8, 60_000)),
    ],
    ids=("many elements", "many cells"),
)
async def test_files_that_take_too_much_memory_or_time_are_invalid(filename: str, make: Callable[[], bytes]) -> None:
    limits = replace(FILE_LIMITS, cpu_seconds=1)

    with pytest.raises(InvalidFile, match=r"takes more than|is invalid|CPU time|more than 5,000,000 tags"):
        await extract_text(make(), filename, None, limits)


@pytest.mark.parametrize(
    ("filename", "make", "reason"),
    [
        ("a.xlsx", lambda: sheet_of("<c/>", 100, 5_001), "more than 500,000 cells"),
        ("a.xlsx", lambda: sheet_of("<c><v>1</v></c>", 100, 15_000), "more than 5,000,000 tags"),
        ("a.xlsx", lambda: sheet_of("", 0, 500_001), "more than 500,000 rows"),
        ("a.xlsx", lambda: xlsx_of_strings("<si><t>a</t></si>" * 500_001), "more than 500,000 strings"),
        ("a.xlsx", lambda: xlsx_of_strings(f"<si>{'<r><t>a</t></r>' * 500_000}</si>"), "more than 500,000 strings"),
        (
            "a.xlsx",
            lambda: sheet_of(f"<c t='inlineStr'><is>{'<r><t>a</t></r>' * 500_001}</is></c>", 1, 1),
            "more than 500,000 strings",
        ),
        ("a.xlsx", lambda: move_part(xlsx_of("<x/>" * 5_000_001), SHEET, SHEET + ".bin"), "more than 5,000,000 tags"),
        ("a.docx", lambda: docx_of("<w:p/>" * 5_000_001), "more than 5,000,000 tags"),
    ],
)
async def test_the_cells_and_tags_of_a_file_are_limited(filename: str, make: Callable[[], bytes], reason: str) -> None:
    with pytest.raises(InvalidFile, match=reason):
        await extract_text(make(), filename)


SHEET = "xl/worksheets/sheet1.xml"


def sheet_of(cell: str, columns: int, rows: int) -> bytes:
    return xlsx_of(f"<sheetData>{f'<row>{cell * columns}</row>' * rows}</sheetData>")


def test_a_small_file_gets_less_cpu_time_than_a_large_one() -> None:
    seconds = [limits_for_file(size).cpu_seconds for size in (0, 96_000, 1_000_000, 3_500_000, 50_000_000)]

    assert seconds == [15, 17, 45, 120, 120]
    assert limits_for_file(50_000_000, replace(FILE_LIMITS, cpu_seconds=5)).cpu_seconds == 5


async def test_a_large_sheet_with_few_cells_is_read() -> None:
    cell = '<c r="XFD{0}" t="inlineStr"><is><t>far</t></is></c>'
    sheet = f'<dimension ref="A1:XFD1048576"/><sheetData><row r="1048576">{cell.format(1048576)}</row></sheetData>'

    assert await extract_text(xlsx_of(sheet), "a.xlsx") == "# Sheet\nfar"


async def test_a_long_document_is_read() -> None:
    paragraph = "<w:p><w:r><w:t>Four score and seven years ago</w:t></w:r></w:p>"

    text = await extract_text(docx_of(paragraph * 100_000), "a.docx")

    assert text.count("Four score") == 100_000


async def test_errors_are_invalid_requests_for_their_callers() -> None:
    with pytest.raises(InvalidRequest):
        await extract_text(b"", "a.txt")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'"\u00fc"', '"ü"'),
        (r'"\\u00fc"', r'"\\u00fc"'),
        (r'"\u0022\u005c\u0000"', r'"\u0022\u005c\u0000"'),
        (r'"\ud83d"', '"\ufffd"'),
        (r'"\u12"', r'"\u12"'),
    ],
)
def test_escapes_of_json_that_have_a_meaning_remain(text: str, expected: str) -> None:
    assert unescape_json(text) == expected


def test_office_is_read_without_the_packages_that_only_writing_needs(tmp_path: Path) -> None:
    for package in ("PIL", "xlsxwriter", "numpy"):
        (tmp_path / f"{package}.py").write_text("raise AssertionError('imported')")
    program = (
        "import asyncio, sys; from stint.documents.files import extract_text\n"
        "print(asyncio.run(extract_text(sys.stdin.buffer.read(), 'a')))"
    )
    environment = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT / "layers" / "core")))}

    for content in (make_docx("x"), make_pptx(("x", "", "")), make_xlsx({"x": [["x"]]})):
        done = subprocess.run(
            [sys.executable, "-c", program], input=content, env=environment, capture_output=True, check=True
        )
        assert done.stdout in (b"x\n", b"# x\nx\n")
