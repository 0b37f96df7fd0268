"""No file may cost more than the limits of the process that reads it, or keep the worker from dividing its text."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.adversarial.document_cases import loops, stream
from tests.unit.documents.office_files import (
    docx_of,
    make_docx,
    make_pptx,
    make_zip,
    move_part,
    replace_parts,
    xlsx_of,
    xlsx_of_strings,
)

MOST_CPU = 20.0
"""CPU time of reading a file within 5 s, and of dividing its text twice, in seconds."""

MOST_MEMORY = 300_000_000
"""Memory of the process that receives the text, which is a third more in the worker. The reader has its own limit."""

PARTS = "http://schemas.openxmlformats.org/package/2006"
MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
MANIFEST = (
    f'<Types xmlns="{PARTS}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{MAIN}"/></Types>'
)


def relations(*targets: str) -> str:
    links = (f'<Relationship Id="r{place}" Type="x" Target="{each}"/>' for place, each in enumerate(targets))
    return f'<Relationships xmlns="{PARTS}/relationships">{"".join(links)}</Relationships>'


def chain(length: int) -> bytes:
    """Return a document each of whose parts refers to the next one."""
    parts = {"[Content_Types].xml": MANIFEST, "word/_rels/document.xml.rels": relations("p0.xml")}
    for number in range(length):
        parts |= {f"word/p{number}.xml": "<a/>", f"word/_rels/p{number}.xml.rels": relations(f"p{number + 1}.xml")}
    return replace_parts(make_docx("x"), parts | {f"word/p{length}.xml": "<a/>"})


def star(length: int) -> bytes:
    """Return a document that refers to many parts."""
    names = [f"p{number}.xml" for number in range(length)]
    parts = {"[Content_Types].xml": MANIFEST, "word/_rels/document.xml.rels": relations(*names)}
    return replace_parts(make_docx("x"), parts | {f"word/{name}": "<a/>" for name in names})


def understated() -> bytes:
    """Return an archive whose parts declare to be smaller than they are."""
    data = make_zip({"[Content_Types].xml": b" " * 100_000_000})
    return data.replace((100_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))


def overlapping() -> bytes:
    """Return an archive whose directory names one part 5,000 times."""
    data = make_zip({"a": b" " * 1_000_000})
    start, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    count = (5_000).to_bytes(2, "little")
    trailer = b"PK\5\6" + bytes(4) + 2 * count + ((end - start) * 5_000).to_bytes(4, "little") + data[end + 16 :]
    return data[:start] + data[start:end] * 5_000 + trailer


def sheet(rows: str) -> bytes:
    return xlsx_of(f"<sheetData>{rows}</sheetData>")


FILES: dict[str, Callable[[], bytes]] = {
    "docx of empty paragraphs": lambda: docx_of("<w:p/>" * 10_000_000),
    "docx of long text": lambda: docx_of(f"<w:p><w:r><w:t>{'word ' * 1_900_000}</w:t></w:r></w:p>" * 3),
    "docx of one text": lambda: docx_of(f"<w:p><w:r><w:t>{'a ' * 20_000_000}</w:t></w:r></w:p>"),
    "docx of attributes": lambda: docx_of("<w:p" + "".join(f' a{n}="1"' for n in range(200_000)) + "/>"),
    "docx of namespaces": lambda: docx_of("".join(f'<w:p xmlns:a{n}="u{n}"/>' for n in range(300_000))),
    "docx of nested tables": lambda: docx_of("<w:tbl><w:tr><w:tc>" * 5_000 + "</w:tc></w:tr></w:tbl>" * 5_000),
    "docx of wide cells": lambda: docx_of(
        '<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="999999999"/></w:tcPr><w:p/></w:tc></w:tr></w:tbl>' * 1_000
    ),
    "docx of a chain of parts": lambda: chain(4_900),
    "docx of many parts": lambda: star(9_900),
    "docx of quadratic entities": lambda: docx_of(
        "<w:p><w:r><w:t>" + "&a;" * 100_000 + "</w:t></w:r></w:p>", f'<!DOCTYPE x [<!ENTITY a "{"a" * 100_000}">]>'
    ),
    "pptx of slides": lambda: make_pptx(*[("title", "text", "notes")] * 200),
    "xlsx of strings": lambda: xlsx_of_strings("<si><t>a</t></si>" * 1_200_000),
    "xlsx of many strings": lambda: xlsx_of_strings("<si><t>a</t></si>" * 7_000_000),
    "xlsx of runs": lambda: sheet(f"<row><c t='inlineStr'><is>{'<r><t>a</t></r>' * 1_000_000}</is></c></row>"),
    "xlsx of empty rows": lambda: sheet("<row/>" * 4_000_000),
    "xlsx of other tags": lambda: xlsx_of("<x/>" * 4_900_000),
    "xlsx of tags in a part of another name": lambda: move_part(
        xlsx_of("<x/>" * 25_000_000), "xl/worksheets/sheet1.xml", "xl/worksheets/sheet1.bin"
    ),
    "xlsx of a million and a half cells": lambda: sheet(f"<row>{'<c><v>1</v></c>' * 100}</row>" * 15_000),
    "xlsx of cells": lambda: sheet(f"<row>{'<c><v>1</v></c>' * 100}</row>" * 40_000),
    "xlsx of wide rows": lambda: sheet('<row><c r="XFD1"/></row>' * 400_000),
    "xlsx of a distant row": lambda: sheet('<row r="99999999999"><c><v>1</v></c></row>'),
    "xlsx of a distant column": lambda: sheet('<row><c r="ZZZZZZZ1"><v>1</v></c></row>'),
    "xlsx of digits": lambda: sheet(f"<row><c><v>{'1' * 4_000_000}</v></c></row>"),
    "xlsx of merged cells": lambda: xlsx_of(
        "<mergeCells>" + '<mergeCell ref="A1:XFD1048576"/>' * 100_000 + "</mergeCells>"
    ),
    "zip of zeros": lambda: make_zip({f"{n}": bytes(14_000_000) for n in range(10)}),
    "zip of understated parts": understated,
    "zip of overlapping parts": overlapping,
    "zip of a directory": lambda: b"PK\3\4" + b"PK\1\2" * 9_000_000,
    "pdf of empty strings": lambda: stream(b"BT /F1 12 Tf " + b"()Tj " * 400_000),
    "html of line breaks": lambda: b"<!doctype html>" + b"<br>" * 12_000_000,
    "html of words": lambda: b"<!doctype html>" + b"<p>word" * 4_000_000,
    "text of one letter": lambda: b"a" * 23_000_000,
    "text of lines": lambda: b"\n" * 23_000_000 + b"a",
    "text of growing lines": lambda: "".join("a" + "\n" * count for count in range(6_800, 0, -1)).encode(),
    "text of emoji": lambda: "🙂".encode() * 4_000_000,
    "text of an emoji": lambda: b"word\r\n" * 3_900_000 + "🙂".encode(),
    "json of escapes": lambda: b'["' + b"\\u4eba," * 3_300_000 + b'"]',
    "json of successive escapes": lambda: b'["' + b"\\u00fc" * 4_000_000 + b'"]',
    "json of brackets": lambda: json.dumps([[]] * 1_000_000).encode() + b"[" * 10_000_000,
} | {f"pdf of loops {place}": lambda data=data: data for place, data in enumerate(loops())}


PROGRAM = """
import asyncio, json, resource, sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from stint.documents.files import InvalidFile, UnsupportedFile, extract_text
from stint.documents.limits import FILE_LIMITS
from stint.retrieval.chunking.static import chunk_static
from stint.retrieval.chunking.windows import chunk_windows

async def read(path):
    with suppress(InvalidFile, UnsupportedFile):
        text = await extract_text(path.read_bytes(), path.name, None, replace(FILE_LIMITS, cpu_seconds=5))
        assert chunk_static(text)
        assert chunk_windows(text, 512)

asyncio.run(read(Path(sys.argv[1])))
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
cpu = sum(each.ru_utime + each.ru_stime for each in used)
print(json.dumps({"cpu": cpu, "memory": 1024 * int(peak.split()[1])}))
"""


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_costs_little(name: str, tmp_path: Path, pace: float) -> None:
    file = tmp_path / f"file.{name.partition(' ')[0].replace('text', 'txt')}"
    file.write_bytes(FILES[name]())

    command = [sys.executable, "-c", PROGRAM, str(file)]
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.stderr == ""
    costs = json.loads(done.stdout)
    assert costs["cpu"] <= MOST_CPU * pace
    assert costs["memory"] <= MOST_MEMORY
