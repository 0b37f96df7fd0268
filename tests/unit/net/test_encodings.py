import codecs
import itertools

import pytest

from stint.documents.text import decode
from stint.net.encodings import LABELS, codecs_of_labels, find_codec

SAMPLES = {
    "shift_jis": ("テスト", "cp932"),
    "EUC-JP": ("テスト", "euc_jp"),
    "iso-2022-jp": ("テスト", "iso2022_jp"),
    "big5": ("測試", "big5"),
    "gb2312": ("测试", "gb18030"),
    "euc-kr": ("시험", "euc_kr"),
    "windows-1251": ("тест", "cp1251"),
    "koi8-u": ("їжак", "koi8-u"),
    "macintosh": ("crème", "mac-roman"),
    "iso-8859-9": ("ğüş", "cp1254"),
    "us-ascii": ("naïve", "cp1252"),
    "utf-16": ("häh", "utf-16-le"),
    " Latin1 ": ("häh", "cp1252"),
    "latin-1": ("häh", "cp1252"),
    "utf_8": ("häh", "utf-8"),
}


@pytest.mark.parametrize("label", SAMPLES)
def test_a_text_is_decoded_by_the_label_of_its_encoding(label: str) -> None:
    text, codec = SAMPLES[label]

    assert decode(text.encode(codec), label, "text/plain", 100) == text


def test_every_label_has_a_codec_and_only_one() -> None:
    assert len(LABELS) == 36
    assert sum(len(labels.split()) for labels in LABELS.values()) == sum(
        len(set(labels.split())) for labels in LABELS.values()
    )
    assert {codecs.lookup(codec).name for codec in set(codecs_of_labels().values())}


@pytest.mark.parametrize(
    "name",
    [
        *("punycode", "idna", "utf-7", "utf7", "unicode_escape", "raw_unicode_escape", "undefined", "palmos", "mbcs"),
        *("utf-32", "utf-8-sig", "hex", "zlib", "bz2", "uu", "quopri", "cp037", "hz", "replacement", "", "é"),
    ],
)
def test_other_codecs_of_python_are_not_known(name: str) -> None:
    assert find_codec(name) is None


@pytest.mark.parametrize("codec", LABELS)
def test_no_encoding_lets_half_of_a_character_pass(codec: str) -> None:
    label = LABELS[codec].split()[0]
    pairs = b"".join(bytes(pair) for pair in itertools.product(range(1, 256, 3), repeat=2))
    halves = "\ud800 \udc00".encode("utf-8" if codec == "utf-8" else "utf-16-le", "surrogatepass")

    for data in (pairs, halves.replace(b"\0", b"\1"), b"\x83\x30\x81\x30\x83\x36\xc7\x39", b"\x1b$B\x7f\x7f\x1b(B"):
        decode(data.replace(b"\0", b"\1"), label, "text/plain", 100_000).encode()
