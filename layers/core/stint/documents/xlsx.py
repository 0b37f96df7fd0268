"""Reading of the values in XLSX workbooks.

`openpyxl` reads the values. What it would do besides is left out, because a small file makes it cost minutes: objects
for each formatted string, merged cell and chart, and rows and cells for the gaps between those of the file.
"""

from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from openpyxl.reader.excel import ExcelReader
from openpyxl.styles.stylesheet import apply_stylesheet
from openpyxl.worksheet._reader import ROW_TAG, WorkSheetParser
from openpyxl.xml.constants import SHARED_STRINGS, SHEET_MAIN_NS
from openpyxl.xml.functions import iterparse

from stint.documents.served import TOO_LARGE, Unreadable
from stint.documents.text_builder import CELL, LINE, PARAGRAPH, TextBuilder

MOST_CELLS = 500_000
"""Maximum cells of a workbook, of its rows, and of its shared strings with the runs of formatted ones."""

STRING, INLINE, RUN, TEXT = (f"{{{SHEET_MAIN_NS}}}{name}" for name in ("si", "is", "r", "t"))


def add_workbook(file: BytesIO, text: TextBuilder) -> None:
    """Add the values of a workbook: a line for each row, below the name of its sheet.

    Raises Unreadable if there are too many, and errors of every kind if the file is broken.
    """
    reader = ValuesReader(file)
    reader.read()
    for title, rows in reader.read_sheets():
        titled = False
        for values in rows:
            cells = [str(value) for value in values if value is not None]
            if cells and not titled:
                titled = True
                text.separate(PARAGRAPH)
                text.add(f"# {title}")
            text.separate(LINE)
            for cell in cells:
                text.add(cell)
                text.separate(CELL)


class Counts(Counter[str]):
    """Counts the rows, cells and strings of a workbook."""

    def add(self, kind: str) -> None:
        """Count one of a kind. Raises Unreadable if there are too many."""
        self[kind] += 1
        if self[kind] > MOST_CELLS:
            raise Unreadable(f"it has more than {MOST_CELLS:,} {kind}: send a part, or its text", TOO_LARGE)

    def text_of(self, string: Any) -> str:
        """Return the text of a string, which is plain or consists of formatted runs, without its phonetic hints."""
        texts: list[str] = []
        for part in string:
            if part.tag == RUN:
                self.add("strings")
                texts += (child.text or "" for child in part if child.tag == TEXT)
            elif part.tag == TEXT:
                texts.append(part.text or "")
        return "".join(texts)


class ValuesReader(ExcelReader):  # type: ignore[misc] # openpyxl has no types
    """Reads what is needed for values: no properties, themes, names, charts and comments."""

    def __init__(self, file: BytesIO) -> None:
        super().__init__(file, read_only=True, data_only=True, keep_links=False)
        self.counts = Counts()

    def read(self) -> None:
        self.read_manifest()
        self.read_strings()
        self.read_workbook()
        apply_stylesheet(self.archive, self.wb)

    def read_strings(self) -> None:
        part = self.package.find(SHARED_STRINGS)
        if part is None:
            return
        with self.archive.open(part.PartName[1:]) as source:
            for _, element in iterparse(source):
                if element.tag == STRING:
                    self.counts.add("strings")
                    self.shared_strings.append(self.counts.text_of(element).replace("x005F_", ""))
                    # Otherwise the whole tree of the part would stay in memory.
                    element.clear()

    def read_sheets(self) -> Iterator[tuple[str, Iterator[list[Any]]]]:
        """Yield the name and the rows of each sheet. A part that several sheets name is read once."""
        left = set(self.valid_files)
        for sheet, relation in self.parser.find_sheets():
            if relation.target in left and "chartsheet" not in relation.Type:
                # A workbook can name a part many times: each time it would be read again.
                left.remove(relation.target)
                yield sheet.name, self.read_rows(relation.target)

    def read_rows(self, target: str) -> Iterator[list[Any]]:
        with self.archive.open(target) as source:
            parser = ValuesParser(
                source,
                self.shared_strings,
                data_only=True,
                epoch=self.wb.epoch,
                date_formats=self.wb._date_formats,
                timedelta_formats=self.wb._timedelta_formats,
            )
            parser.counts = self.counts
            yield from parser.read_rows()


class ValuesParser(WorkSheetParser):  # type: ignore[misc]
    """Reads the values of a sheet's cells, and nothing else of it."""

    counts: Counts

    def read_rows(self) -> Iterator[list[Any]]:
        """Yield the values of each row that the file has."""
        for _, element in iterparse(self.source):
            if element.tag == ROW_TAG:
                # Rows and cells are counted when they are read, not by the size that the sheet declares.
                self.counts.add("rows")
                _, cells = self.parse_row(element)
                self.row_dimensions.clear()
                yield [cell["value"] for cell in cells]
                element.clear()

    def parse_cell(self, element: Any) -> dict[str, Any]:
        self.counts.add("cells")
        if element.get("t") != "inlineStr":
            cell: dict[str, Any] = super().parse_cell(element)
            return cell
        inline = element.find(INLINE)
        return {"value": None if inline is None else self.counts.text_of(inline)}
