"""Citations in texts, however the text arrives."""

import random

import pytest

from stint.domain.openai.parts import FileCitation, OutputText
from stint.services.responses.citations import LONGEST, CitationParser, can_be_cited, cite, join

SOURCES = {"file-1": "andes.txt", "file-2": "peru.md", "a/b c": "never", "notes.v2": "notes"}


def citation(index: int, file_id: str) -> FileCitation:
    return FileCitation(index=index, file_id=file_id, filename=SOURCES[file_id])


def streamed(pieces: list[str]) -> OutputText:
    parser = CitationParser(SOURCES)
    found = [each for piece in pieces for each in parser.add(piece)]
    return join([*found, *parser.finish()])


@pytest.mark.parametrize(
    ("text", "cleaned", "citations"),
    [
        ("", "", []),
        ("No sources.", "No sources.", []),
        ("In Peru <|file-1|>.", "In Peru.", [citation(7, "file-1")]),
        ("In Peru.<|file-1|><|file-2|>", "In Peru.", [citation(8, "file-1"), citation(8, "file-2")]),
        ("One <|file-1|> two <|file-2|>", "One two", [citation(3, "file-1"), citation(7, "file-2")]),
        ("<|file-1|> starts", " starts", [citation(0, "file-1")]),
        ("Two  <|file-1|>", "Two ", [citation(4, "file-1")]),
        ("Made up <|file-9|>.", "Made up.", []),
        ("By its name <|notes.v2|>", "By its name", [citation(11, "notes.v2")]),
        ("A token <|endoftext|> is text", "A token <|endoftext|> is text", []),
        ("Cut <|file-1", "Cut <|file-1", []),
        ("Cut <|file-1|", "Cut <|file-1|", []),
        ("a < b <| c |> <||> ", "a < b <| c |> <||> ", []),
        ("<|<|file-1|>|>", "<||>", [citation(2, "file-1")]),
        ("日本 <|file-2|>😀", "日本😀", [citation(2, "file-2")]),
    ],
)
def test_markers_become_annotations_and_leave_the_text(text: str, cleaned: str, citations: list[FileCitation]) -> None:
    assert cite(text, SOURCES) == OutputText(text=cleaned, annotations=citations)


def test_the_pieces_of_a_text_do_not_matter() -> None:
    chance = random.Random(1)
    parts = ["<|file-1|>", " <|file-2|>", "<|", "|>", " ", "<", "|", "file-1", "word", "<|x|>", "\n", "<|file-77|>"]
    for _ in range(300):
        text = "".join(chance.choices(parts, k=12))
        cuts = sorted(chance.sample(range(len(text) + 1), k=min(6, len(text))))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert streamed(pieces) == streamed(list(text)) == cite(text, SOURCES), repr(text)


def test_only_an_end_that_may_begin_a_marker_waits() -> None:
    parser = CitationParser(SOURCES)

    assert list(parser.add("In Peru")) == ["In Peru"]
    assert list(parser.add(" <|fil")) == []
    assert list(parser.add("e-1|>.")) == [citation(7, "file-1"), "."]
    assert list(parser.add(" <|" + "x" * 500)) == [" <|" + "x" * 500]


def test_little_waits_however_long_the_text_is() -> None:
    parser = CitationParser(SOURCES)
    longest = 0
    for _ in range(2_000):
        list(parser.add("<|aaaa"))
        longest = max(longest, len(parser.rest))

    assert longest <= LONGEST


@pytest.mark.parametrize(
    ("name", "can"), [("file-1", True), ("notes.v2", True), ("a b", False), ("", False), ("x" * 200, False)]
)
def test_a_document_is_cited_if_its_id_fits_into_a_marker(name: str, can: bool) -> None:
    assert can_be_cited(name) is can
