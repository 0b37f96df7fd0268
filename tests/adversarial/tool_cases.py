"""Registrations of tools and shields, directives of the scripted model, and their use with long texts."""

import json
from functools import partial
from itertools import product
from typing import Any

from tests.adversarial.case import CASES, Case, case, create_session, get, post

HTTP = "remote-execution"
OBJECT = {"type": "object", "properties": {"x": {"type": "string"}}}
TURN = {"stream": False}


def user(text: str) -> dict[str, Any]:
    return TURN | {"messages": [{"role": "user", "content": text}]}


@case
def tool_of_a_long_scheme() -> Case:
    """Register large tools, which each later list has to read."""
    tool = {"name": "t", "url": "http://127.0.0.1:9/", "parameters": OBJECT, "description": "a" * 60_000}
    for number in range(20):
        group = {"toolgroup_id": f"g{number}", "provider_id": HTTP, "args": {"tools": [tool]}}
        answer = yield post("/v1/toolgroups", group)
        assert answer.status == 200, answer.body
    answer = yield get("/v1/toolgroups")
    assert answer.status == 200


@case
def tool_with_an_argument_in_many_places() -> Case:
    body = json.dumps("{x}" * 20_000)
    tool = {"name": "t", "url": "http://127.0.0.1:9/", "method": "POST", "parameters": OBJECT, "body": body}
    answer = yield post("/v1/toolgroups", {"toolgroup_id": "a", "provider_id": HTTP, "args": {"tools": [tool]}})
    assert answer.status == 200, answer.body
    session = yield from create_session(toolgroups=["a"])
    answer = yield post(f"{session}/turn", user("call: t " + json.dumps({"x": "a" * 500_000})))
    assert answer.status == 200, answer.body[:500]
    answer = yield post("/v1/tool-runtime/invoke", {"tool_name": "t", "kwargs": {"x": "a" * 500_000}})
    assert answer.status == 200, answer.body[:500]


PIECES = ('\\"', '"', "<", "<![CDATA[", "<!--", "<a '", "<script ", "</script ", "&", "{", "[", "\n", " ", "{t}")
TYPES = ("application/x-www-form-urlencoded", "application/json", "application/x-ndjson", "text/xml", "text/html", "")


@case
def tool_with_a_text_body_that_is_hard_to_divide() -> Case:
    for number, (kind, piece) in enumerate(product(TYPES, PIECES)):
        body = f'"{piece * (25_000 // len(piece))}{{t}}'
        tool = {"name": "t", "url": "http://127.0.0.1:9/", "method": "POST", "parameters": OBJECT, "body": body}
        args = {"tools": [tool | {"headers": {"Content-Type": kind}}]}
        answer = yield post("/v1/toolgroups", {"toolgroup_id": f"g{number}", "provider_id": HTTP, "args": args})
        assert answer.status == 200 or b"has the placeholder" in answer.body, answer.body


TEXTS: dict[str, str] = {
    "words": "word " * 1_100_000,
    "one_word": "a" * 5_500_000,
    "spaces": "say: a" + " " * 5_500_000 + "b",
    "tabs": "\t" * 2_800_000 + "say",
    "lines": "say: x\n" * 700_000,
    "thoughts": "think: x|y\n" * 450_000,
    "calls": "call: a\n" * 600_000,
    "length": "long: 999999999 words",
    "length_of_many_digits": f"long: {'9' * 400} words",
    "repeats": "repeat: 999999999\ncall: lookup x",
    "pairs": "lookup " + "a=b " * 1_300_000,
    "quotes": "lookup " + "'\"" * 1_800_000,
    "numbers": "lookup " + "1" * 5_000_000,
    "braces": "lookup " + "{" * 5_000_000,
    "lists": 'lookup {"x": ' + "[" * 5_000_000,
    "names": "lookup-" * 700_000,
}


def said(text: str) -> Case:
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}, "x": {}}, "required": ["n", "x"]}
    tools = [{"type": "function", "name": name, "parameters": parameters} for name in ("lookup", "a" * 60)]
    body = {"model": "scripted/demo", "input": text, "tools": tools, "reasoning": {"effort": "low"}}
    answer = yield post("/v1/responses", body)
    assert answer.status in (200, 400), answer.body[:500]


for name, text in TEXTS.items():
    CASES[f"scripted_{name}"] = partial(said, text)

LONG_TEXTS: dict[str, str] = {
    "words": "word number and " * 60_000,
    "letters": "a" * 1_000_000,
    "short_words": "a " * 500_000,
    "chinese": "".join(map(chr, range(0x4E00, 0x9000))) * 50,
    "many_letters": "".join(map(chr, [*range(0x100, 0xD800), *range(0xE000, 0xF0000)])),
    "marks": "\u0301\u0323" * 500_000,
    "ligatures": "\ufdfa" * 1_000_000,
    "too_long": "a " * 2_900_000,
}


def shielded(text: str) -> Case:
    """Check a text with eight deny lists of the maximum size, before and after the model."""
    phrases = [f"{'a' * (number % 40)}b{number}" for number in range(999)]
    patterns = [r"\b\d{16}\b", "(a+)+$", "(a|b)*a(a|b){200}c", "(.*a){20}x", r"^(\w+\s?)*$", "[\u4e00-\u9fff]{900}x"]
    for number in range(8):
        params = {"phrases": [*phrases, str(number)], "patterns": patterns, "whole_words": number % 2 == 0}
        answer = yield post("/v1/shields", {"shield_id": f"s{number}", "provider_id": "deny-list", "params": params})
        assert answer.status == 200, answer.body
    shields = [f"s{number}" for number in range(8)]
    session = yield from create_session(input_shields=shields, output_shields=shields)
    answer = yield post(f"{session}/turn", json.dumps(user(text), ensure_ascii=False).encode())
    assert answer.status in (200, 413, 502), answer.body[:500]


for name, text in LONG_TEXTS.items():
    CASES[f"shields_{name}"] = partial(shielded, text)


@case
def shields_that_look_up_many_letters() -> Case:
    """Check a text of many distinct characters, each of which must be mapped once, with upper and lower case."""
    letters = [chr(code) for code in range(0x100, 0x20000) if chr(code).isalpha()][:32_000]
    cased = [chr(code) for code in range(0x10400, 0x10450)] + [chr(code) for code in range(0x410, 0x450)]
    text = ("".join(letters) + "".join(cased) * 10_000)[:999_000]
    for number in range(8):
        params = {"patterns": [f"q[a-z0-9]{{{number + 1}}}z"]}
        yield post("/v1/shields", {"shield_id": f"l{number}", "provider_id": "deny-list", "params": params})
    session = yield from create_session(input_shields=[f"l{number}" for number in range(8)])
    answer = yield post(f"{session}/turn", json.dumps(user(text), ensure_ascii=False).encode())
    assert answer.status in (200, 502), answer.body[:500]


@case
def shield_with_many_phrases() -> Case:
    for params in (
        {"phrases": ["a" * 200] * 1_000},
        {"phrases": ["\ufdfa" * 200] * 1_000},
        {"phrases": ["a" * 5_000_000]},
        {"phrases": [str(number) for number in range(190_000)]},
        {"patterns": ["a" * 5_000_000]},
        {"patterns": ["[" + "".join(map(chr, range(0x4E00, 0x9000, 2))) + "]"] * 90},
        {"patterns": ["(((a{1000}){1000}){1000}){1000}"] * 100},
        {"patterns": [f"[\u0100-{chr(0x10FF00 + number)}]" * 19 for number in range(100)]},
        {"user_message": "a" * 5_000_000},
        {"a" * 5_000_000: 1},
    ):
        answer = yield post("/v1/shields", {"shield_id": "s", "provider_id": "deny-list", "params": params})
        assert len(answer.body) < 50_000 or answer.status == 200


@case
def agent_with_many_shields() -> Case:
    yield post("/v1/shields", {"shield_id": "s", "provider_id": "deny-list", "params": {"phrases": ["a" * 200] * 200}})
    session = yield from create_session(input_shields=["s"] * 100_000)
    answer = yield post(f"{session}/turn", user("hi"))
    assert answer.status == 400, answer.body[:500]
    answer = yield post(f"{session}/turn", user("hi") | {"output_shields": ["s"] * 190_000, "input_shields": []})
    assert answer.status == 400, answer.body[:500]
