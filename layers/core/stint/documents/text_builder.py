"""Building of the text of a document from its parts, within a limit."""

from io import StringIO

from stint.documents.text import too_long

NOTHING, SPACE, CELL, LINE, PARAGRAPH = range(5)
SEPARATORS = ("", " ", " | ", "\n", "\n\n")


class TextBuilder:
    """Joins texts. The strongest separator since the last text is written when the next one arrives."""

    def __init__(self, most_characters: int) -> None:
        self._most = most_characters
        self._written = StringIO()  # a list of pieces would take 20 times the memory for small cells
        self._separator = NOTHING

    def add(self, text: str) -> None:
        """Add a text. Raises Unreadable if there are too many characters."""
        if not text:
            return
        if self._written.tell():
            self._written.write(SEPARATORS[self._separator])
        self._separator = NOTHING
        self._written.write(text)
        # After each text, so that no more than one text exceeds the limit.
        if self._written.tell() > self._most:
            raise too_long(self._most)

    def separate(self, separator: int) -> None:
        self._separator = max(self._separator, separator)

    def build(self) -> str:
        return self._written.getvalue().strip()
