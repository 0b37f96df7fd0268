"""Names that people cannot tell apart."""

import sys
import unicodedata

import pytest

from stint.services.registry.folded_names import HIDDEN, IGNORABLE, fold_name


@pytest.mark.parametrize(
    "name",
    [
        "MCP::Crm",
        " mcp::crm\t",
        "mcp ::crm",
        "mcp::crm\u00a0\u2003",
        "mcp\u200b::\u200dcrm",
        "\u202emcp::crm\u2066",
        "mcp::c\u034frm\ufe0f",
        "mcp::crm\U000e0063\U000e0100",
        "mcp\uff1a\uff1a\uff43\uff52\uff4d",
        "mcp::crm\u115f\u3164\uffa0\u2800",
        "mcp\U0001d159::\U00016fe4crm\U0001107f",
        "mcp::crm\u0378\ufffc\ufdd0\U0010ffff",
        "\ue000mcp::crm\U000f0000",
    ],
)
def test_names_that_look_alike_are_equal(name: str) -> None:
    assert fold_name(name) == "mcp::crm"


def test_an_invisible_character_does_not_separate_an_accent_from_its_letter() -> None:
    assert fold_name("caf\u00e9") == fold_name("cafe\u0301") == fold_name("cafe\u034f\u0301") == fold_name("CAF\u00c9")


@pytest.mark.parametrize("other", ["mcp::crn", "mcp:crm", "mcp::crm2", "mcp::crm\u0301", "mcp/crm"])
def test_names_that_differ_visibly_are_not_equal(other: str) -> None:
    assert fold_name(other) != fold_name("mcp::crm")


def test_no_format_character_of_this_unicode_version_is_visible_and_folding_is_stable() -> None:
    chars = map(chr, range(0x80, sys.maxunicode + 1))
    hidden = [char for char in chars if unicodedata.category(char) in HIDDEN or IGNORABLE.fullmatch(char)]
    for at in range(0, len(hidden), 256):
        assert fold_name(f"a{''.join(hidden[at : at + 256])}b") == "ab", hex(ord(hidden[at]))
    for name in ("\u0130x", "\u1e9e", "\u03c3\u03c2", "\ufb01", "\u2126", "\u0345"):
        assert fold_name(fold_name(name)) == fold_name(name)
