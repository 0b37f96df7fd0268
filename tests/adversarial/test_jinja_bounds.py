"""Attacks on the time and memory of templates. Work is counted in calls, memory by tracemalloc."""

import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stint.domain.errors import InvalidRequest
from stint.jinja import evaluation
from stint.jinja.template import compiled, fill_template

MANY = [""] * 3_000
NESTED = "{{% for a in messages %}}{{% for b in messages %}}{}{{% endfor %}}{{% endfor %}}"
WORK = 5_000
CALLS_OF_WORK = 6
"""Maximum calls of functions for one unit of work."""


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    count = [0]

    def add(frame: object, event: str, argument: object) -> None:
        count[0] += event in ("call", "c_call")

    sys.setprofile(add)
    try:
        yield count
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize(
    ("template", "messages"),
    [
        (NESTED.format(""), MANY),
        (NESTED.format("{{ loop.nextitem }}"), MANY),
        (NESTED.format("{{ loop.length }}{{ loop.revindex }}"), MANY),
        (NESTED.format("{{ a.content | trim | trim | trim }}"), MANY),
        (NESTED.format("{% if a in messages %}{% endif %}"), MANY),
        (NESTED.format("{{ messages | map(attribute='content') | selectattr('role') | first }}"), MANY),
        (NESTED.format("{{ [''] | reverse | list | first }}"), MANY),
        ("{% for a in messages if not messages[:][:][:] %}{% endfor %}", MANY),
        ("{% for a in messages %}{% if '" + "ab" * 500 + "' in '" + "ab" * 3_000 + "' %}{% endif %}{% endfor %}", MANY),
    ],
)
def test_steps_are_bounded(monkeypatch: pytest.MonkeyPatch, template: str, messages: list[str]) -> None:
    monkeypatch.setattr(evaluation, "MAX_WORK", WORK)
    compiled(template)

    with counted_calls() as calls, pytest.raises(InvalidRequest, match="reads more than"):
        fill_template(template, messages)

    assert calls[0] < CALLS_OF_WORK * WORK + len(messages)


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages | join }}" * 60,
        "{{ " + " ~ ".join(["messages[0]"] * 200) + " }}",
        "{{ " + " + ".join(["messages[0]"] * 20) + " }}" * 20,
        "{{ [" + "messages[0], " * 200 + "] | join }}",
        "{{ [" + "messages[0], " * 200 + "] }}",
        "{{ messages | join(messages[0]) | replace('a', messages[0]) | length }}",
        "{{ messages[0] | join(messages[0][:1_000]) | length }}",
        "{{ messages[0] | replace('', messages[0]) | length }}",
        "{{ messages" + " | tojson" * 10 + " | length }}",
        "{{ messages" + " | string | list" * 5 + " }}",
        "{% if (" + " ~ ".join(["messages[0]"] * 200) + ") | length %}{% endif %}",
        "{{ 'a' if " + " == ".join(["messages[0]"] * 190) + " }}",
        NESTED.format("x" * 9_000),
    ],
)
@pytest.mark.parametrize("text", ["a" * 100_000, "\0" * 50_000, "\N{GRINNING FACE}" * 50_000])
def test_memory_is_bounded(template: str, text: str) -> None:
    compiled(template)
    tracemalloc.start()
    try:
        fill_or_refuse(template, [text] * 3 if "for" not in template else [""] * 200)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_characters_to_trim_are_charged_for_each_character_of_the_text() -> None:
    with pytest.raises(InvalidRequest, match="reads more than"):
        fill_template("{{ messages[0] | trim(messages[1]) | length }}", ["\u0161" * 3_000, "\u0261" * 3_000 + "\u0161"])


@pytest.mark.parametrize(
    "unfinished",
    ["{{", "{%", "{#", "{{-", "{%- raw -%}", "{% raw", "{{ '", '{{ "\\', "{{ 1_", "{{ [", "{{ -", "{{ not ", "{{ a.b"],
)
def test_unfinished_tags_are_refused_in_linear_time(unfinished: str) -> None:
    """A pass over the text by a regular expression is one call, so characters are limited, too."""
    template = (unfinished * 10_000)[:10_000]

    with counted_calls() as calls, pytest.raises(InvalidRequest):
        compiled(template)

    assert calls[0] < 1_000_000


ATOMS = st.sampled_from(
    [
        *("messages", "messages[0]", "messages[-1].content", "m", "m.role", "n", "loop.index", "loop.previtem"),
        *("'%9999999d'", "'{0.__class__}'", "''", "9", "-1", "1.5", "none", "true", "['upper', m]", "range", "self"),
    ]
)
SUFFIXES = st.sampled_from(
    [
        *("", "", "", "[0]", "[1:]", "[::-1]", ".content", ".__class__", "['role']", "[m]", "(1)", " is defined"),
        *(" | join(m)", " | join", " | upper", " | list", " | tojson", " | replace('', m)", " | truncate(9)"),
        *(" | reverse", " | first", " | last", " | trim(m)", " | default(m)", " | map(attribute='content')"),
        *(" | selectattr('role', m)", " | string", " | title", " | attr('x')", " is string", " is eq m", " is in m"),
    ]
)
OPERATORS = st.sampled_from([" ~ ", " + ", " - ", " % ", " * ", " and ", " or ", " == ", " < ", " in ", " if ", ", "])


def combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(inner, OPERATORS, inner).map(lambda parts: f"({''.join(parts)})")
    return st.one_of(st.tuples(inner, SUFFIXES).map("".join), binary, inner.map(lambda each: f"(not {each})"))


EXPRESSIONS = st.recursive(st.tuples(ATOMS, SUFFIXES).map("".join), combine, max_leaves=6)


def wrap(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = st.sampled_from(["m", "n", "loop"])
    return st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.tuples(names, EXPRESSIONS, inner).map("{{% for {0[0]} in {0[1]} -%}} {0[2]}{{% endfor %}}".format),
        st.tuples(EXPRESSIONS, inner, inner).map("{{% if {0[0]} %}}{0[1]}{{% else %}}{0[2]}{{% endif %}}".format),
        inner.map("{{% for m in messages %}}{{% for n in messages %}}{0}{{% endfor %}}{{% endfor %}}".format),
    )


BODIES = st.one_of(EXPRESSIONS.map("{{{{ {0} }}}}".format), st.text(alphabet="{}%#-' ax", max_size=6))
TEMPLATES = st.recursive(BODIES, wrap, max_leaves=5)


@settings(max_examples=60, deadline=None)
@given(TEMPLATES, st.lists(st.text(alphabet="a'%\0{", max_size=8), max_size=12))
def test_any_template_ends_within_its_budget(template: str, messages: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "MAX_WORK", WORK)
        try:
            compiled(template)
        except InvalidRequest:
            return
        with counted_calls() as calls:
            filled = fill_or_refuse(template, messages)
        assert calls[0] < CALLS_OF_WORK * WORK + 5_000
        assert len(filled) <= WORK
        assert "object at 0x" not in filled
        assert "<class" not in filled


def fill_or_refuse(template: str, messages: list[str]) -> str:
    try:
        return fill_template(template, messages)
    except InvalidRequest as error:
        return error.message
