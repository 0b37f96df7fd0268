import pytest

from stint.domain.errors import InvalidRequest
from stint.jinja.template import check_template, fill_template

OF_LLAMA_STACK = """\
{%- for message in messages %}
{%- if message.role == 'user' %}
{{ loop.index }}. {{ message.content | trim }}
{%- elif message.role == 'assistant' -%}
never
{%- else %}{{ message['role'] }}{% endif %}
{%- endfor %}
Write a search query."""


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        ("Search for: {{ messages[-1] }}", "Search for: b"),
        ("{{messages|last}} {{ messages[0] }}", "b a"),
        ("{% for m in messages %}{{ loop.index }}. {{ m }}\n{% endfor %}", "1. a\n2. b\n"),
        ("{% for m in messages %}{{ m }}{% if not loop.last %}, {% else %}!{% endif %}{% endfor %}", "a, b!"),
        ("{% for m in messages if m != 'a' %}{{ m }}/{{ loop.length }}{% else %}none{% endfor %}", "b/1"),
        ("{% for m in messages[2:] %}{{ m }}{% else %}none{% endfor %}", "none"),
        ("{% for m in messages %}{% for n in messages | reverse %}{{ m }}{{ n }}{% endfor %}{% endfor %}", "abaabbba"),
        ("{% for m in messages %}{% for x in [1, 2] %}{{ loop.index0 + 1 }}{% endfor %}{% endfor %}", "1212"),
        ("{{ messages | join(' | ') }}! {{ messages | length }}", "a | b! 2"),
        ("{{ messages | map(attribute='content') | join(' ') | upper }}", "A B"),
        ("{{ messages | selectattr('role', 'equalto', 'user') | list | length }}", "2"),
        ("{{ messages | rejectattr('role', '==', 'user') | first | default('nothing') }}", "nothing"),
        ("{{ messages | rejectattr('role') | length or messages[7] }}", ""),
        ("x {%- for m in messages -%} {{ m | trim }} {%- endfor %} y", "xab y"),
        ("{# nothing #}plain {braces} {% raw %}{{ text }}{% endraw %}", "plain {braces} {{ text }}"),
        ("{{ messages }} {{ messages | tojson }}", """['a', 'b'] ["a", "b"]"""),
        ("{{ messages[7] }}{{ messages[7].content }}{{ messages[messages[0]] }}", ""),
        ("{{ messages[7] | default('none') }} {{ 'x' if messages[7] is defined else 'y' }}", "none y"),
        ("{{ messages[0].content }} {{ messages[-1]['role'] }}", "a user"),
        ("{{ messages[0] ~ 1 ~ messages[1] + 'c' }} {{ (messages[0] ~ 'bc')[1:] }}", "a1bc bc"),
        ("{{ 'aba' | replace('a', messages[1]) }} {{ 'abcd' | truncate(3, true, leeway=0, end='.') }}", "bbb ab."),
        ("{{ 'x' if 'a' in messages and not messages[0] in ['b'] else 'y' }}{{ 7 % 4 - 1 }}", "x2"),
        (OF_LLAMA_STACK, "\n1. a\n2. b\nWrite a search query."),
    ],
)
def test_a_template_makes_a_prompt_as_jinja_does(template: str, prompt: str) -> None:
    assert fill_template(template, ["a", "b"]) == prompt


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("\n{% for", "line 2: unexpected 'end of template'"),
        ("{% for m in messages %}{{ m }}", "line 1: Unexpected end of template"),
        ("\n\n{% frobnicate %}", "line 3: Encountered unknown tag 'frobnicate'"),
        ("{{ messages[0].__class__ }}", "no field '__class__'"),
        ("{{ messages[0]['__class__'] }}", "no field '__class__'"),
        ("{{ messages.content }}", "'messages' is a list"),
        ("{{ messages[0].upper }}", "no field 'upper'"),
        ("{{ messages[0] | attr('format') }}", "no filter 'attr'"),
        ("{{ messages | map('upper') }}", "map\\(attribute='content'\\)"),
        ("{{ messages | map(attribute='__class__') }}", "map\\(attribute='content'\\)"),
        ("{{ messages | map(attribute=messages[0]) }}", "map\\(attribute='content'\\)"),
        ("{{ messages | selectattr('__class__') }}", "selectattr\\('role'"),
        ("{{ messages | join('', '__class__') }}", "'join' has arguments"),
        ("{{ messages | join('', attribute='x') }}", "'join' has arguments"),
        ("{{ messages | join(*messages) }}", "'join' has arguments"),
        ("{{ messages | join(**messages) }}", "'join' has arguments"),
        ("{{ 'x' | center(1000000000) }}", "no filter 'center'"),
        ("{{ '%1000000000d' | format(1) }}", "no filter 'format'"),
        ("{{ '%1000000000d' is odd }}", "no test 'odd'"),
        ("{{ messages[0].format(1) }}", "a call is not supported"),
        ("{{ '{0.__class__}'.format(1) }}", "a call is not supported"),
        ("{{ range(1000000000) }}", "a call is not supported"),
        ("{{ namespace }}", "'namespace' is undefined; there is: messages"),
        ("{{ self }}", "'self' is undefined"),
        ("{{ loop.index }}", "outside of a loop"),
        ("{% for m in messages %}{{ loop }}{% endfor %}", "'loop' is undefined"),
        ("{% for m in messages %}{{ loop.cycle }}{% endfor %}", "'loop' has no 'cycle'"),
        ("{% for m in messages %}{{ loop._iterable }}{% endfor %}", "'loop' has no '_iterable'"),
        ("{% for m in messages %}{% endfor %}{{ m }}", "'m' is undefined"),
        ("{% for m in messages %}{% else %}{{ m }}{% endfor %}", "'m' is undefined"),
        ("{% for m in messages if loop.first %}{% endfor %}", "outside of a loop"),
        ("{% for loop in messages %}{% endfor %}", "a name of your own"),
        ("{% for messages in messages %}{% endfor %}", "a name of your own"),
        ("{% for a, b in messages %}{% endfor %}", "a name of your own"),
        ("{% for \N{LATIN SMALL LETTER LONG S} in messages %}{% endfor %}", "a name of your own"),
        ("{% for m in messages recursive %}{{ m }}{% endfor %}", "a name of your own"),
        ("{% for a in messages %}" * 3 + "{% endfor %}" * 3, "nested 2 times"),
        ("{{ 'a' * 1000000000 }}", "'\\*' is not supported"),
        ("{{ 9 ** 9 ** 9 }}", "'\\*\\*' is not supported"),
        ("{{ {'a': 1} }}", "'dict' is not supported"),
        ("{% set x = 1 %}", "{% set %} is not supported"),
        ("{% set x %}{% endset %}", "{% set %} is not supported"),
        ("\n{% include '/etc/passwd' %}", "line 2: {% include %} is not supported"),
        ("{% import 'a' as b %}", "{% import %}"),
        ("{% extends 'a' %}", "{% extends %}"),
        ("{% block a %}{% endblock %}", "{% block %}"),
        ("{% macro a() %}{% endmacro %}", "{% macro %}"),
        ("{% with %}{% endwith %}", "{% with %}"),
        ("{% filter upper %}{% endfilter %}", "{% filter %}"),
        ("{% autoescape true %}{% endautoescape %}", "{% autoescape %}"),
        ("{{ 1" + "0" * 15 + "1 }}", "numbers are at most"),
        ("{{ " + "1" * 5_000 + " }}", "cannot be read: Exceeds the limit"),
        ("{{ 1[1:] }}", "a slice of a constant"),
        ("{{ " + "(" * 4_000 + "1" + ")" * 4_000 + " }}", "nested too deeply"),
        ("{{ 1" + " | trim" * 40 + " }}", "at most 30 levels"),
        ("{{ 1 }}" * 1_000, "at most 1,000 parts"),
        ("{% if 1 %}" + "{% elif 1 %}" * 60 + "{% endif %}", "at most 50 elif"),
        ("x" * 10_001, "more than 10,000 characters"),
    ],
)
def test_anything_else_is_refused_by_name(template: str, problem: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"^field: The template of the query generator .*{problem}") as refused:
        check_template(template, "field")

    assert (refused.value.code, refused.value.param) == ("invalid_query_template", "field")


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{ '%1000000000d' % 1 }}", "'%' needs two numbers"),
        ("{{ messages + messages }}", "'\\+' needs two numbers, or two texts"),
        ("{{ 1 % 0 }}", "modulo by zero"),
        ("{% for c in messages[0] %}{% endfor %}", "a text or number is not a list"),
        ("{{ messages | selectattr('role', 'odd') }}", "no test 'odd'"),
        ("{{ 1 < 'a' }}", "not supported between"),
        ("{{ messages[0][::0] }}", "slice step cannot be zero"),
        ("{{ messages[0] | truncate(1) }}", "expected length >= 3"),
        ("{{ messages[9][1:] }}", "no element 9"),
    ],
)
def test_values_that_do_not_suit_an_expression_are_named(template: str, problem: str) -> None:
    check_template(template, "field")

    with pytest.raises(InvalidRequest, match=problem):
        fill_template(template, ["a", "b"])


def test_text_of_a_message_is_not_a_template() -> None:
    assert fill_template("{{ messages[0] }}", ["{{ 7 * 7 }}{% for <&>"]) == "{{ 7 * 7 }}{% for <&>"
