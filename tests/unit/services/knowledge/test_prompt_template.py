import pytest

from stint.domain.errors import InvalidRequest
from stint.services.knowledge.prompt_template import fill_prompt_template


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        ("Search for: {{ messages[-1] }}", "Search for: b"),
        ("{{messages|last}} {{ messages[0] }}", "b a"),
        ("{% for m in messages %}<{{ m }}>{% endfor %}", "<a><b>"),
        ("{% for m in messages %}{{ loop.index }}. {{ m }}\n{% endfor %}", "1. a\n2. b\n"),
        ("{{ messages | join(' | ') }}!", "a | b!"),
        ('{{ messages | join(", ") }}', "a, b"),
        ("{{ messages | join }} of {{ messages | length }}", "ab of 2"),
        ("x {%- for m in messages -%} {{ m | trim }} {%- endfor %} y", "xab y"),
        ("{# nothing #}plain {braces} text", "plain {braces} text"),
        ("{{ messages }}", "['a', 'b']"),
        ("{{ messages[7] }}", ""),
        ("{{ messages[0].content }} {{ messages[-1].role }}", "a user"),
        ("{{ messages[0]['content'] }} {{ messages[-1][ \"role\" ] | trim }}", "a user"),
        ("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }};{% endfor %}", "user: a;user: b;"),
        ("{% for m in messages %}{{ m.role }}: {{ m.content | trim }};{% endfor %}", "user: a;user: b;"),
    ],
)
def test_the_documented_part_of_jinja_makes_the_prompt(template: str, prompt: str) -> None:
    assert fill_prompt_template(template, ["a", "b"]) == prompt


@pytest.mark.parametrize(
    "template",
    [
        "{% for",
        "{% for m in messages %}{{ m }}",
        "{% for m in messages %}{% for n in messages %}{{ n }}{% endfor %}{% endfor %}",
        "{% for m in range(1000000000) %}x{% endfor %}",
        "{{ messages.__class__.__mro__ }}",
        "{{ messages.content }}",
        "{{ messages['content'] }}",
        "{{ messages[0]['content\"] }}",
        "{{ messages[0]['__class__'] }}",
        "{{ messages[0].contents }}",
        "{{ messages[0].content.content }}",
        "{{ 'a' * 1000000000 }}",
        "{{ m }}",
        "{{ messages | upper }}",
        "{{ messages | join(', ') + 'x' }}",
        "{% set x = 1 %}",
        "{% endfor %}",
        "{% include '/etc/passwd' %}",
    ],
)
def test_anything_else_is_refused_with_what_is_possible(template: str) -> None:
    with pytest.raises(InvalidRequest, match=r"template of the query generator .* messages") as refused:
        fill_prompt_template(template, ["a", "b"])

    assert refused.value.code == "invalid_query_template"


def test_a_prompt_has_a_maximum_size() -> None:
    with pytest.raises(InvalidRequest, match="200,000 characters"):
        fill_prompt_template("{{ messages | join }}" * 400, ["x" * 1_000])


@pytest.mark.parametrize(
    "expression", ["{{ messages | join | trim }}", "{{ m | trim }}" * 100, f"{{{{ m {'| trim' * 1_000} }}}}"]
)
def test_a_template_is_bounded_that_works_for_nothing(expression: str) -> None:
    template = f"{{% for m in messages %}}{expression}{{% endfor %}}"

    with pytest.raises(InvalidRequest, match="reads more than 2,000,000 characters"):
        fill_prompt_template(template, [" "] * 20_000)


def test_text_of_a_message_is_not_a_template() -> None:
    assert (
        fill_prompt_template("{{ messages[0] }}", ["{{ messages | length }}{% for"]) == "{{ messages | length }}{% for"
    )


@pytest.mark.parametrize("template", ["{{" * 5_000, "{%" * 5_000, "{{ messages" + " | join" * 1_000, "{#" * 5_000])
def test_unfinished_tags_are_refused(template: str) -> None:
    with pytest.raises(InvalidRequest):
        fill_prompt_template(template, ["a"])
