import random
import subprocess
import sys
from contextlib import suppress

import pytest
from tests.unit.documents.pdf_files import make_bomb, make_encrypted, make_half_character, make_pdf

from stint.documents.pdf import pdf_to_text
from stint.documents.served import Unreadable


def text_of(data: bytes, pages: int = 10, characters: int = 1000) -> str:
    return pdf_to_text(data, pages, characters)


def problem(data: bytes, pages: int = 10, characters: int = 1000) -> str:
    with pytest.raises(Unreadable) as caught:
        text_of(data, pages, characters)
    return str(caught.value)


def test_the_text_of_the_pages_is_given() -> None:
    assert text_of(make_pdf("Page one", "Page two")) == "Page one\n\nPage two"


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4", b"no pdf at all", make_pdf("x")[:200], b"%PDF-1.4\n" + b"\0" * 500])
def test_a_broken_file_is_refused(data: bytes) -> None:
    assert "the PDF is invalid" in problem(data)


def test_a_damaged_file_is_read_or_refused_and_nothing_else() -> None:
    whole = make_encrypted("Hello damage", "")
    dice = random.Random(1)

    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(8):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        with suppress(Unreadable):
            text_of(bytes(damaged))


def test_an_encrypted_file_is_read_without_a_password_or_refused() -> None:
    assert text_of(make_encrypted("Hello", "")) == "Hello"
    assert "encrypted: remove its password" in problem(make_encrypted("Hello", "secret"))


def test_pages_and_characters_are_limited() -> None:
    three = make_pdf("one", "two", "three")

    assert text_of(three, pages=3, characters=11) == "one\n\ntwo\n\nthree"
    assert "has 3 pages; at most 2 are allowed" in problem(three, pages=2)
    assert "more than 10 characters" in problem(three, characters=10)


def test_halves_of_characters_are_replaced_as_they_cannot_be_stored() -> None:
    assert text_of(make_half_character()) == "B?B"


def test_a_file_without_text_is_refused() -> None:
    assert "has no text" in problem(make_pdf("", ""))


def test_a_small_file_cannot_fill_the_memory() -> None:
    bomb = make_bomb(60_000_000)

    assert len(bomb) < 100_000
    assert "unpacked PDF is too large" in problem(bomb)


def test_the_library_is_imported_only_for_a_pdf() -> None:
    code = "import sys, stint.documents.reading; print('pypdf' in sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": "layers/core"}
    )

    assert done.stdout.strip() == "False"
