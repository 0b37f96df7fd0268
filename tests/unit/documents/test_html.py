import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.documents.html import html_to_text
from stint.documents.served import Unreadable


def text_of(html: str) -> str:
    return html_to_text(html, 500_000)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one  two\n three</p><p>four</p>", "one two three\n\nfour"),
        ("<div>one</div><div>two</div>", "one\ntwo"),
        ("<b>bo</b>ld <i> and</i> so", "bold and so"),
        ("one<br>two<br><br>three", "one\ntwo\n\nthree"),
        ("<ul><li>one<li><p>two</p></ul>", "- one\n- two"),
        ("<table><tr><th>k</th><th>v</th></tr><tr><td>1<td>2</table>", "k | v\n1 | 2"),
        ("<table><tr><td></td><td>x</td></tr></table>", "x"),
        ("a<pre>  x\n    y</pre>b", "a\n\n  x\n    y\n\nb"),
        ("<h1>Title</h1>text", "Title\n\ntext"),
        ("&eacute;&#8364;&#x2713;&amp;lt;", "é€✓&lt;"),
        ("3 < 4 && 5 > 4", "3 < 4 && 5 > 4"),
        ("<img src=x alt='A cat'>", "A cat"),
        ("", ""),
        ("plain", "plain"),
    ],
)
def test_a_page_is_read_as_a_reader_sees_it(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize(
    "html",
    [
        "seen<script>hidden('<p>')</script>",
        "seen<SCRIPT type='x'>if (a < b) hidden</SCRIPT >",
        "seen<style>p { hidden: 1 }</style>",
        "seen<!-- hidden <p> -->",
        "seen<!-- hidden, without an end",
        "seen<script>hidden, without an end",
        "<!DOCTYPE hidden>seen<?php hidden ?>",
        "seen<![if hidden]><![foo[hidden]>",
        "seen<svg><text>hidden</text><svg/></svg><template><p>hidden</p></template>",
        "seen<noscript>hidden</noscript>",
        "<script>a.indexOf('<!--')</script>seen<!-- hidden -->",
        "seen<p title='hidden > hidden' class=\"hidden\">",
    ],
)
def test_what_no_reader_sees_is_dropped(html: str) -> None:
    assert text_of(html) == "seen"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('see <a href="https://x.org/a?b=1&amp;c=2">this page</a>.', "see this page (https://x.org/a?b=1&c=2)."),
        ('<a href="https://x.org">https://x.org</a>', "https://x.org"),
        ('<a href="mailto:ada@x.org">ada@x.org</a>', "ada@x.org"),
        ('<a href="/relative">here</a>', "here"),
        ('<a href="javascript:alert(1)">here</a>', "here"),
        ('<a href="https://x.org"></a>gone', "gone"),
        ('<a href="https://x.org">never closed', "never closed"),
    ],
)
def test_a_link_is_its_text_with_its_address(html: str, text: str) -> None:
    assert text_of(html) == text


@given(
    st.lists(st.sampled_from(["<", ">", "a", "/", "!--", "-->", "<p>", "</p>", "<script>", '"', "=", "&", ";", " "]))
)
def test_any_text_is_read(parts: list[str]) -> None:
    text_of("".join(parts))


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a <b and no end", "a <b and no end"),
        ('one<p title="never closed', 'one<p title="never closed'),
        ('<p title="never closed>two', "two"),
        ("<p it's>two", "two"),
        ("<p a='x' b=\"y\" c=z d/>two", "two"),
        ("<img alt = 'A &amp; B' alt=no>", "A & B"),
        ("<img data-alt=no ALT=yes>", "yes"),
        ("<A HREF=https://x.org>here</A>", "here (https://x.org)"),
        ("<script></script ", ""),
        ("<script></script x='>'y", "'y"),
        ("<svg/>seen", "seen"),
        ("</>a</3>b", "</>a</3>b"),
    ],
)
def test_unusual_markup_is_read(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("&#" + "1" * 5_000, "\ufffd"),
        ("&#x" + "f" * 5_000 + ";", "\ufffd"),
        ("&#" + "0" * 5_000 + "65;", "A"),
        ("&#X" + "0" * 5_000 + "4a;b", "Jb"),
        ("&#" + "0" * 5_000, "\ufffd"),
        ("&#00f", "\ufffdf"),
        ("&#xd800;&#xdfff;", "\ufffd\ufffd"),
        ("&#1114112;", "\ufffd"),
        ("<img alt='&#" + "9" * 5_000 + "'>", "\ufffd"),
    ],
)
def test_numbers_of_characters_may_have_any_length(html: str, text: str) -> None:
    assert text_of(html) == text


def test_a_text_that_is_too_long_is_given_up() -> None:
    assert html_to_text("<p>" + "x" * 10, 10) == "x" * 10
    for html in ("<p>" + "x" * 11, "<p>x" * 5):
        with pytest.raises(Unreadable, match="more than 10 characters"):
            html_to_text(html, 10)
