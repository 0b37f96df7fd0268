"""One Stint as the model server of another one, by the Responses API, with the unmodified clients."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent
from openai import APIError, APIStatusError, BadRequestError, NotFoundError, RateLimitError
from tests.openresponses.peer_wire import Cut, Refusal
from tests.servers.chat_completions import error, stream, words
from tests.system.peers import WRONG_KEY, Peers, running_mcp_server, running_peers
from tests.system.test_open_responses import PIXEL
from tests.system.test_openai_client import WEATHER, Weather, call_of

MODEL = "peer/scripted/demo"
IMAGE = f"data:image/png;base64,{PIXEL}"
FIRST_TEXT = b'"response.output_text.delta"'


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    with running_peers(tmp_path_factory.mktemp("peers")) as peers:
        yield peers


@pytest.fixture
def peers(running: Peers) -> Peers:
    running.forget()
    return running


@pytest.fixture(scope="module")
def sums() -> Iterator[Any]:
    with running_mcp_server() as url:
        yield {"type": "mcp", "server_label": "sums", "server_url": f"{url}/mcp", "require_approval": "never"}


def of_type(items: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [item for item in items if item["type"] == kind]


def reasoning_of(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a server needs to continue its reasoning."""
    names = ("id", "summary", "encrypted_content")
    return [{name: item[name] for name in names} for item in of_type(items, "reasoning")]


def test_text_is_streamed(peers: Peers) -> None:
    with peers.client.responses.stream(model=MODEL, input="long: 20 words", instructions="Be brief.") as events:
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        final = events.get_final_response()

    [sent] = peers.tap.requests
    assert len(deltas) > 1
    assert final.output_text == "".join(deltas) == " ".join(f"word{number}" for number in range(1, 21))
    assert (sent["model"], sent["stream"], sent["store"]) == ("scripted/demo", True, False)
    assert sent["include"] == ["reasoning.encrypted_content"]
    assert [item["role"] for item in sent["input"]] == ["system", "user"]
    assert peers.tap.exchanges[0].route == "responses"


def test_a_function_of_the_caller_is_called_and_its_output_sent(peers: Peers) -> None:
    question = "Please get_weather of Bern"
    asked = peers.client.responses.create(model=MODEL, input=question, tools=[WEATHER])
    call = call_of(asked)
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    chained = peers.client.responses.create(model=MODEL, previous_response_id=asked.id, input=[output], tools=[WEATHER])
    history: list[Any] = [{"role": "user", "content": question}, *asked.output, output]
    whole = peers.client.responses.create(model=MODEL, input=history, tools=[WEATHER], store=False)

    first, second, third = peers.tap.requests
    [made] = of_type(peers.answered(0), "function_call")
    assert (call.call_id, call.name, call.arguments) == (made["call_id"], "get_weather", '{"city": "Bern"}')
    assert chained.output_text == whole.output_text == "get_weather answered: rain"
    assert second["input"][: len(first["input"])] == first["input"]
    assert [(item["type"], item["call_id"]) for item in second["input"][-2:]] == [
        ("function_call", call.call_id),
        ("function_call_output", call.call_id),
    ]
    assert second["input"][-1]["output"] == "rain"
    assert third["input"] == second["input"]
    assert first["tools"] == second["tools"]


def test_a_tool_that_the_first_runs_is_a_function_of_the_second(peers: Peers, sums: Any) -> None:
    done = peers.client.responses.create(model=MODEL, input='call: add {"a": 1, "b": 2}', tools=[sums])

    first, second = peers.tap.requests
    assert [item.type for item in done.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert done.output_text == "add answered: 3"
    assert {tool["type"] for tool in first["tools"]} == {"function"}
    assert of_type(second["input"], "function_call_output")[0]["output"] == "3"


def test_images_and_every_parameter_are_passed_on(peers: Peers) -> None:
    parts = [{"type": "input_text", "text": "Look"}, {"type": "input_image", "image_url": IMAGE, "detail": "low"}]
    options: Any = {"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 64, "parallel_tool_calls": False}
    options |= {"text": {"verbosity": "low"}, "tool_choice": {"type": "function", "name": "get_weather"}}
    question: Any = [{"role": "user", "content": parts}]
    asked = peers.client.responses.create(model=MODEL, input=question, tools=[WEATHER], **options)
    seen = peers.client.responses.create(model=MODEL, input=question)

    first, second = peers.tap.requests
    assert call_of(asked).name == "get_weather"
    assert {name: first[name] for name in options} == options
    assert first["tools"] == [WEATHER]
    assert second["input"][0]["content"] == parts
    assert "(with 1 image)" in seen.output_text


def test_reasoning_goes_back_unchanged_in_tool_rounds_and_later_responses(peers: Peers, sums: Any) -> None:
    reasoning: Any = {"effort": "low", "summary": "auto"}
    steps = 'think: Weigh it.\ncall: add {"a": 1, "b": 2}'
    asked = peers.client.responses.create(model=MODEL, input=steps, tools=[sums], reasoning=reasoning)
    later = peers.client.responses.create(
        model=MODEL, input="Sure?", previous_response_id=asked.id, reasoning=reasoning
    )

    _, second, third = peers.tap.requests
    thoughts = reasoning_of(peers.answered(0)) + reasoning_of(peers.answered(1))
    seen = [item.summary[0].text for item in asked.output if item.type == "reasoning"]
    assert seen == ["Weigh it.", "Weigh it."]
    assert [thought["summary"][0]["text"] for thought in thoughts] == seen
    assert reasoning_of(second["input"]) == thoughts[:1]
    assert reasoning_of(third["input"]) == thoughts
    assert (asked.output_text, later.output_text) == ("add answered: 3", "You said: Sure?")


def test_reasoning_returns_inside_the_first_stacks_encrypted_content(
    peers: Peers,
) -> None:
    """It is streamed, and the caller returns it."""
    options: Any = {"reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"], "store": False}
    thinking = "think: Weigh it. | Seven"
    with peers.client.responses.stream(model=MODEL, input=thinking, **options) as events:
        deltas = [event.delta for event in events if event.type == "response.reasoning_text.delta"]
        asked = events.get_final_response()
    history: list[Any] = [{"role": "user", "content": thinking}, *asked.output, {"role": "user", "content": "Sure?"}]
    again = peers.client.responses.create(model=MODEL, input=history, **options)

    [thought] = reasoning_of(peers.answered(0))
    [seen] = [item for item in asked.output if item.type == "reasoning"]
    assert "".join(deltas) == "Weigh it."
    assert seen.encrypted_content
    assert seen.encrypted_content != thought["encrypted_content"]
    assert reasoning_of(peers.tap.requests[1]["input"]) == [thought]
    assert again.output_text == "You said: Sure?"


def test_the_second_refuses_reasoning_that_was_changed(peers: Peers) -> None:
    options: Any = {"reasoning": {"effort": "low", "summary": "auto"}}
    asked = peers.client.responses.create(model=MODEL, input="think: Weigh it. | Seven", **options)
    peers.client.responses.create(model=MODEL, input="Sure?", previous_response_id=asked.id, **options)

    def send(item: dict[str, Any]) -> int:
        body = peers.tap.requests[1]
        body["input"] = [item if each["type"] == "reasoning" else each for each in body["input"]]
        headers = {"authorization": f"Bearer {peers.key}"}
        url = f"{peers.second.url}/v1/responses"
        return httpx.post(url, json=body, headers=headers, trust_env=False, timeout=60).status_code

    [thought] = of_type(peers.tap.requests[1]["input"], "reasoning")
    changed = thought["encrypted_content"][:-6] + "AAAA=="
    assert send(thought) == 200
    assert send(thought | {"encrypted_content": changed}) == 400


def test_reasoning_of_another_model_is_omitted(peers: Peers) -> None:
    options: Any = {"reasoning": {"effort": "low"}}
    asked = peers.client.responses.create(model="scripted/demo", input="think: Mine. | Seven", **options)
    there = peers.client.responses.create(model=MODEL, input="Sure?", previous_response_id=asked.id, **options)
    back = peers.client.responses.create(model="scripted/demo", input="And you?", previous_response_id=there.id)

    [sent] = peers.tap.requests
    assert of_type(sent["input"], "reasoning") == []
    assert [there.output_text, back.output_text] == ["You said: Sure?", "You said: And you?"]


def test_structured_output_is_that_of_the_second(peers: Peers) -> None:
    response = peers.client.responses.parse(model=MODEL, input="It is 7 and clear in Bern", text_format=Weather)

    [sent] = peers.tap.requests
    assert isinstance(response.output_parsed, Weather)
    assert response.output_parsed.degrees == 7
    assert (sent["text"]["format"]["type"], sent["text"]["format"]["strict"]) == ("json_schema", True)
    assert sent["text"]["format"]["schema"] == {**Weather.model_json_schema(), "additionalProperties": False}


def test_the_counts_of_tokens_are_those_of_the_second(peers: Peers) -> None:
    counts = {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99}
    read: Any = {"prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 16}}
    read |= {"completion_tokens_details": {"reasoning_tokens": 7}}
    peers.lab.script(stream(*words("Cold again"), usage=counts | read))
    response = peers.client.responses.create(model="peer/lab/llama", input="Is it cold? " * 20)

    usage = response.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (90, 9, 99)
    assert usage.input_tokens_details.cached_tokens == 64
    assert usage.input_tokens_details.to_dict()["cache_write_tokens"] == 16
    assert usage.output_tokens_details.reasoning_tokens == 7


def test_tokens_are_counted_by_the_shortest_answer_that_the_second_accepts(peers: Peers) -> None:
    counted = peers.client.responses.input_tokens.count(model=MODEL, input="How many words are these?")

    assert counted.input_tokens == 5
    assert [sent["max_output_tokens"] for sent in peers.tap.requests] == [16]


def test_other_endings_are_those_of_the_second(peers: Peers) -> None:
    def create(text: str) -> Any:
        return peers.client.responses.create(model=MODEL, input=text)

    filtered, cut = create("long: 9 words\nfilter: after 2 words"), create("long: 40 words\ncut: 3 words")
    refused = create("refuse: Not that")

    assert (filtered.incomplete_details.reason, filtered.output_text) == ("content_filter", "word1 word2 ")
    assert (cut.incomplete_details.reason, cut.output_text) == ("max_output_tokens", "word1 word2 word3 ")
    assert refused.output[0].content[0].refusal == "Not that"


@pytest.fixture
def llama(peers: Peers) -> Iterator[LlamaStackClient]:
    with LlamaStackClient(base_url=peers.first.url, http_client=httpx.Client(trust_env=False)) as client:
        yield client


def test_turns_of_a_session_extend_what_was_sent(peers: Peers, sums: Any, llama: LlamaStackClient) -> None:
    llama.toolgroups.register(
        toolgroup_id="mcp::sums",
        provider_id="model-context-protocol",
        mcp_endpoint={"uri": sums["server_url"]},
    )
    agent = Agent(llama, model=MODEL, instructions="Be brief.", tools=["mcp::sums/add"])
    session = agent.create_session("peers")
    texts = ['call: add {"a": 1, "b": 2}', "say: Goodbye"]
    for text in texts:
        messages: Any = [{"role": "user", "content": text}]
        events: Any = list(agent.create_turn(messages, session))
        assert events[-1].event.payload.event_type == "turn_complete"

    stored = llama.agents.session.retrieve(session, agent_id=agent.agent_id)
    first, second, third = (request["input"] for request in peers.tap.requests)
    assert [turn.output_message.content for turn in stored.turns] == ["add answered: 3", "Goodbye"]
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert [item.get("role") or item["type"] for item in third] == [
        *("system", "user", "function_call", "function_call_output", "assistant", "user")
    ]


def test_an_answer_that_is_cut_before_its_text_is_asked_for_again(peers: Peers) -> None:
    peers.tap.plan(Cut(FIRST_TEXT))
    response = peers.client.responses.create(model=MODEL, input="say: Hello there")

    first, second = peers.tap.requests
    assert (response.status, response.output_text) == ("completed", "Hello there")
    assert first == second


def test_an_answer_that_is_cut_later_has_failed_and_can_be_asked_for_again(peers: Peers) -> None:
    peers.tap.plan(Cut(b"word6 "), Cut(b"word6 "))
    events: list[Any] = []
    stream = peers.client.responses.create(model=MODEL, input="long: 9 words", stream=True)
    with stream, pytest.raises(APIError, match="closed the connection"):
        events.extend(stream)
    with pytest.raises(APIStatusError, match="closed the connection") as failed:
        peers.client.responses.create(model=MODEL, input="long: 9 words")
    stored = peers.client.responses.retrieve(events[0].response.id)
    again = peers.client.responses.create(model=MODEL, input="long: 9 words")

    texts = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(texts) == "word1 word2 word3 word4 word5 "
    assert failed.value.status_code == 502
    assert (stored.status, stored.error and stored.error.code) == ("failed", "model_error")
    assert stored.output_text == "".join(texts)
    assert again.output_text.endswith("word9")
    assert len(peers.tap.exchanges) == 3


def test_a_call_that_is_cut_is_not_made(peers: Peers, sums: Any) -> None:
    calls = peers.client.responses.create(model=MODEL, input='call: add {"a": 1, "b": 2}', tools=[sums]).output
    before = count_additions(sums)
    peers.tap.plan(Cut(b"event: response.function_call_arguments.done"))
    with pytest.raises(APIStatusError, match="closed the connection"):
        peers.client.responses.create(model=MODEL, input='call: add {"a": 1, "b": 2}', tools=[sums])

    assert [item.type for item in calls] == ["mcp_list_tools", "mcp_call", "message"]
    assert before == count_additions(sums) > 0


def count_additions(sums: Any) -> int:
    stats: dict[str, int] = httpx.get(f"{sums['server_url']}/../stats", trust_env=False, timeout=60).json()
    return stats["add"]


def test_an_answer_that_is_cut_after_its_end_is_whole(peers: Peers) -> None:
    peers.tap.plan(Cut(b"data: [DONE]"))
    response = peers.client.responses.create(model=MODEL, input="say: Hello there")

    assert (response.status, response.output_text) == ("completed", "Hello there")
    assert len(peers.tap.exchanges) == 1


def test_an_answer_that_is_cut_in_a_conversation_leaves_nothing_in_it(peers: Peers) -> None:
    conversation = peers.client.conversations.create().id
    peers.tap.plan(Cut(b"event: response.completed"))
    with pytest.raises(APIStatusError, match="closed the connection"):
        peers.client.responses.create(model=MODEL, input="say: Once", conversation=conversation)
    for text in ("say: Again", "say: Later"):
        peers.client.responses.create(model=MODEL, input=text, conversation=conversation)

    assert [item["content"] for item in peers.tap.requests[-1]["input"]] == ["say: Again", "Again", "say: Later"]


def test_a_turn_that_is_cut_can_be_taken_again(peers: Peers, llama: LlamaStackClient) -> None:
    agent = Agent(llama, model=MODEL, instructions="Be brief.")
    session = agent.create_session("cut")
    messages: Any = [{"role": "user", "content": "long: 9 words"}]
    peers.tap.plan(Cut(b"word6 "))
    with pytest.raises(RuntimeError, match="closed the connection"):
        agent.create_turn(messages, session, stream=False)
    again: Any = agent.create_turn(messages, session, stream=False)

    assert again.output_message.content.endswith("word8 word9")


def test_a_limit_that_ends_soon_is_awaited(peers: Peers) -> None:
    peers.tap.plan(limit_for(1))
    response = peers.client.responses.create(model=MODEL, input="say: Hello")

    assert response.output_text == "Hello"
    assert len(peers.tap.exchanges) == 1


@pytest.mark.parametrize("streamed", [False, True])
def test_a_limit_that_lasts_longer_is_passed_on(peers: Peers, streamed: bool) -> None:
    peers.tap.plan(limit_for(30))
    with pytest.raises(RateLimitError, match="Slow down") as limited:
        peers.client.responses.create(model=MODEL, input="say: Hello", stream=streamed)

    assert limited.value.response.headers["retry-after"] == "30"
    assert peers.tap.exchanges == []


def limit_for(seconds: int) -> Refusal:
    error = {"message": "Slow down.", "type": "too_many_requests", "code": "rate_limit_exceeded", "param": None}
    return Refusal(429, {"error": error}, (f"retry-after: {seconds}",))


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("fail: throttled", 429, "rate_limit_exceeded"),
        ("fail: overloaded", 503, "model_overloaded"),
        ("fail: context", 400, "context_length_exceeded"),
        ("fail: after 3 words", 502, "model_error"),
    ],
)
def test_a_failure_of_the_seconds_model_is_one_of_the_firsts(peers: Peers, text: str, status: int, code: str) -> None:
    with pytest.raises(APIStatusError, match="as the message asked") as failed:
        peers.client.responses.create(model=MODEL, input=f"{text}\nsay: one two three four")

    assert (failed.value.status_code, failed.value.code) == (status, code)


def test_a_refusal_names_the_field(peers: Peers) -> None:
    peers.lab.script(error(400, "Too hot.", type="invalid_request_error", param="temperature", code="too_hot"))
    with pytest.raises(BadRequestError, match="Too hot") as refused:
        peers.client.responses.create(model="peer/lab/llama", input="Hello", temperature=1.9)
    with pytest.raises(BadRequestError, match="does not understand 'long: many'") as later:
        peers.client.responses.create(model=MODEL, input="long: many")

    assert (refused.value.param, refused.value.code) == ("temperature", "too_hot")
    assert later.value.param == "input"


def test_a_key_that_the_second_refuses_is_a_fault_of_the_first(peers: Peers) -> None:
    with pytest.raises(APIStatusError, match="the key of provider 'stranger' in STINT_PROVIDERS") as refused:
        peers.client.responses.create(model="stranger/scripted/demo", input="Hello")

    assert (refused.value.status_code, refused.value.code) == (502, "model_unauthorized")
    assert WRONG_KEY not in str(refused.value)


@pytest.mark.parametrize("provider", ["peer", "plain"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_model_that_the_second_lacks_is_named(peers: Peers, provider: str, streamed: bool) -> None:
    with pytest.raises((BadRequestError, NotFoundError), match="no scripted model 'scripted/nobody'") as refused:
        peers.client.responses.create(model=f"{provider}/scripted/nobody", input="Hello", stream=streamed)

    assert (refused.value.param, refused.value.code) == ("model", "model_not_found")
    assert len(peers.tap.exchanges) == 1


def test_without_api_the_second_is_called_by_chat_completions(peers: Peers) -> None:
    response = peers.client.responses.create(model="plain/scripted/demo", input="say: Hello there")

    assert response.output_text == "Hello there"
    assert [exchange.route for exchange in peers.tap.exchanges] == ["chat/completions"]


def test_without_chat_completions_it_is_called_by_responses_from_then_on(peers: Peers) -> None:
    peers.tap.plan(Refusal(404, {"detail": "Not Found"}))
    texts = [
        peers.client.responses.create(model="other/scripted/demo", input=f"say: {word}").output_text
        for word in ("One", "Two")
    ]

    assert texts == ["One", "Two"]
    assert [exchange.route for exchange in peers.tap.exchanges] == ["responses", "responses"]
