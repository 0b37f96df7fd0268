import json
from typing import Any

import pytest

from stint.domain.content import URL, ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AssistantAnswer,
    Decoding,
    GrammarResponseFormat,
    InferenceRequest,
    JsonObjectResponseFormat,
    JsonSchemaResponseFormat,
    Reasoning,
    ReasoningOptions,
    SystemText,
    ToolResult,
    ToolSignature,
    UserInput,
)
from stint.domain.llama_stack.sampling import SamplingParams
from stint.domain.tools import ToolCall, ToolChoice
from stint.models.bedrock.request import check_converse, write_converse

ADD = ToolSignature("add", "", {"type": "object", "properties": {}})


def written(model: str = "amazon.nova-pro-v1:0", **fields: Any) -> dict[str, Any]:
    return write_converse(InferenceRequest(model, fields.pop("messages", (UserInput("hi"),)), **fields)).parameters


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({}, {"temperature": 0.0}),
        ({"strategy": {"type": "top_p", "temperature": 0.7}}, {"temperature": 0.7, "topP": 0.95}),
        ({"strategy": {"type": "top_p", "temperature": None, "top_p": 0.5}}, {"topP": 0.5}),
        ({"max_tokens": 5, "stop": ["END"]}, {"temperature": 0.0, "maxTokens": 5, "stopSequences": ["END"]}),
        ({"max_tokens": 0, "stop": []}, {"temperature": 0.0}),
    ],
)
def test_sampling_is_the_inference_config(fields: dict[str, Any], sent: dict[str, Any]) -> None:
    assert written(decoding=SamplingParams.model_validate(fields).to_decoding())["inferenceConfig"] == sent


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("eu.amazon.nova-pro-v1:0", {"inferenceConfig": {"topK": 9}}),
        ("cohere.command-r-v1:0", {"k": 9}),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", {"top_k": 9}),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc", {"top_k": 9}),
    ],
)
def test_top_k_is_named_as_the_family_names_it(model: str, sent: dict[str, Any]) -> None:
    params = SamplingParams.model_validate({"strategy": {"type": "top_k", "top_k": 9}})

    parameters = written(model, decoding=params.to_decoding())

    assert parameters["additionalModelRequestFields"] == sent
    assert "inferenceConfig" not in parameters


@pytest.mark.parametrize(
    ("decoding", "param"),
    [
        (Decoding(repetition_penalty=1.1), "sampling_params.repetition_penalty"),
        (Decoding(frequency_penalty=0.0), "frequency_penalty"),
        (Decoding(presence_penalty=1.0), "presence_penalty"),
        (Decoding(seed=0), "seed"),
    ],
)
def test_what_converse_lacks_is_refused_by_name(decoding: Decoding, param: str) -> None:
    with pytest.raises(InvalidRequest, match=param.rpartition(".")[2]) as caught:
        written(decoding=decoding)

    assert caught.value.param == param


def test_log_probabilities_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="no log probabilities") as caught:
        written(top_logprobs=0)

    assert caught.value.param == "logprobs"


def test_top_k_is_refused_for_a_family_without_it() -> None:
    with pytest.raises(InvalidRequest, match=r"us\.meta\.llama3.* top_k") as caught:
        written("us.meta.llama3-3-70b-instruct-v1:0", decoding=Decoding(top_k=9))

    assert caught.value.param == "sampling_params"


SONNET = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
OPUS = "anthropic.claude-opus-4-6-v1"


class TestEffort:
    @pytest.mark.parametrize(
        ("model", "effort", "sent"),
        [
            (SONNET, "medium", {"thinking": {"type": "enabled", "budget_tokens": 8192}}),
            (
                "anthropic.claude-3-7-sonnet-20250219-v1:0",
                "minimal",
                {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            ),
            ("anthropic.claude-opus-4-20250514-v1:0", "max", {"thinking": {"type": "enabled", "budget_tokens": 24576}}),
            (OPUS, "minimal", {"thinking": {"type": "adaptive"}}),
            (OPUS, "none", None),
            (SONNET, "none", None),
            ("global.anthropic.claude-opus-5", "none", {"thinking": {"type": "disabled"}}),
            (
                "us.amazon.nova-2-lite-v1:0",
                "xhigh",
                {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}},
            ),
            ("openai.gpt-oss-120b-1:0", "low", {"reasoning_effort": "low"}),
            ("meta.llama3-3-70b-instruct-v1:0", "none", None),
        ],
    )
    def test_an_effort_is_sent_as_the_family_names_it(
        self, model: str, effort: str, sent: dict[str, Any] | None
    ) -> None:
        assert written(model, reasoning=ReasoningOptions(effort)).get("additionalModelRequestFields") == sent

    def test_adaptive_thinking_is_as_deep_as_the_effort_and_summarized_when_wanted(self) -> None:
        parameters = written(OPUS, reasoning=ReasoningOptions("xhigh", "auto"))

        assert parameters["outputConfig"] == {"effort": "xhigh"}
        assert parameters["additionalModelRequestFields"]["thinking"]["display"] == "summarized"

    @pytest.mark.parametrize(("longest", "budget"), [(1025, 1024), (6000, 3000), (100_000, 8192)])
    def test_half_of_an_answer_at_most_is_thought(self, longest: int, budget: int) -> None:
        parameters = written(SONNET, reasoning=ReasoningOptions("medium"), decoding=Decoding(max_tokens=longest))

        assert parameters["additionalModelRequestFields"]["thinking"]["budget_tokens"] == budget

    @pytest.mark.parametrize(
        ("model", "effort", "fields", "param"),
        [
            ("meta.llama3-3-70b-instruct-v1:0", "low", {}, "reasoning.effort"),
            ("anthropic.claude-3-5-sonnet-20241022-v2:0", "low", {}, "reasoning.effort"),
            ("anthropic.claude-fable-5", "none", {}, "reasoning.effort"),
            (SONNET, "utmost", {}, "reasoning.effort"),
            (SONNET, "low", {"decoding": Decoding(max_tokens=1024)}, "reasoning.effort"),
            (SONNET, "low", {"decoding": Decoding(temperature=0.0)}, "temperature"),
            (OPUS, "low", {"decoding": Decoding(top_k=3)}, "sampling_params"),
            (OPUS, "low", {"tools": (ADD,), "tool_choice": ToolChoice.required}, "tool_choice"),
        ],
    )
    def test_what_goes_with_no_effort_is_refused_by_name(
        self, model: str, effort: str, fields: dict[str, Any], param: str
    ) -> None:
        with pytest.raises(InvalidRequest) as caught:
            check_converse(InferenceRequest(model, (), reasoning=ReasoningOptions(effort), **fields))

        assert caught.value.param == param

    @pytest.mark.parametrize(
        ("model", "reasoning", "kept"),
        [
            (SONNET, ReasoningOptions("low"), True),
            (SONNET, None, False),
            (OPUS, None, False),
            ("anthropic.claude-opus-5", None, True),
            ("anthropic.claude-opus-5", ReasoningOptions("none"), False),
            ("openai.gpt-oss-120b-1:0", ReasoningOptions("low"), False),
        ],
    )
    def test_earlier_thoughts_are_sent_to_models_that_think(
        self, model: str, reasoning: ReasoningOptions | None, kept: bool
    ) -> None:
        thought = AssistantAnswer("Hi", reasoning=Reasoning(text="hm", signature="s"))

        sent = written(model, messages=(UserInput("Hi"), thought, UserInput("More")), reasoning=reasoning)

        blocks = sent["messages"][1]["content"]
        assert blocks[-1] == {"text": "Hi"}
        assert (blocks[0].get("reasoningContent") is not None) is kept

    def test_thoughts_of_another_provider_are_left_out_and_changed_ones_refused(self) -> None:
        unsigned = AssistantAnswer("Hi", reasoning=Reasoning(text="hm"))
        changed = AssistantAnswer("Hi", reasoning=Reasoning(redacted="no base64!"))

        sent = written(SONNET, messages=(UserInput("Hi"), unsigned), reasoning=ReasoningOptions("low"))

        assert sent["messages"][1]["content"] == [{"text": "Hi"}]
        with pytest.raises(InvalidRequest, match="was changed"):
            written(SONNET, messages=(UserInput("Hi"), changed), reasoning=ReasoningOptions("low"))


def test_a_strict_tool_is_a_closed_schema() -> None:
    tool = ToolSignature("add", "", {"type": "object", "properties": {"a": {"type": "integer"}}}, strict=True)

    [spec] = written(tools=(tool,))["toolConfig"]["tools"]

    assert spec["toolSpec"]["strict"] is True
    assert spec["toolSpec"]["inputSchema"]["json"] == {**tool.parameters, "additionalProperties": False}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [(ToolChoice.auto, None), (ToolChoice.required, {"any": {}}), ("add", {"tool": {"name": "add"}})],
)
def test_tool_choice(choice: ToolChoice | str, sent: Any) -> None:
    config = written(tools=(ADD,), tool_choice=choice)["toolConfig"]

    assert config.get("toolChoice") == sent
    assert config["tools"] == [{"toolSpec": {"name": "add", "inputSchema": {"json": ADD.parameters}}}]


def test_results_and_the_next_input_are_one_user_message_with_the_results_first() -> None:
    calls = tuple(ToolCall(call_id=f"c{n}", tool_name="add", arguments="{broken") for n in (1, 2))
    messages = (
        UserInput("Add"),
        AssistantAnswer("Moment", calls),
        ToolResult("c1", "add", "1"),
        ToolResult("c2", "add", "2"),
        UserInput("Thanks"),
    )

    sent = written(messages=messages, tools=(ADD,))["messages"]

    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert [next(iter(block)) for block in sent[1]["content"]] == ["text", "toolUse", "toolUse"]
    assert sent[1]["content"][1]["toolUse"]["input"] == {"invalid_arguments": "{broken"}
    assert [next(iter(block)) for block in sent[2]["content"]] == ["toolResult", "toolResult", "text"]


def test_an_image_by_address_is_refused_by_name() -> None:
    image = ImageContentItem(image=ImageSource(url=URL(uri="https://example.com/a.png")))

    with pytest.raises(InvalidRequest, match=r"send the bytes of https://example.com/a.png") as caught:
        written(messages=(UserInput(image),))

    assert caught.value.param == "messages"


def test_a_json_schema_is_a_closed_schema_as_text() -> None:
    schema = {"title": "Answer", "type": "object", "properties": {"a": {"type": "string"}}}

    text_format = written(response_format=JsonSchemaResponseFormat(json_schema=schema))["outputConfig"]["textFormat"]

    definition = text_format["structure"]["jsonSchema"]
    assert text_format["type"] == "json_schema"
    assert definition["name"] == "Answer"
    assert json.loads(definition["schema"]) == {**schema, "additionalProperties": False}


def test_a_grammar_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="grammar"):
        written(response_format=GrammarResponseFormat(bnf={}))


def test_names_of_participants_go_into_the_text() -> None:
    """A hint that Converse lacks has no effect."""
    image = ImageContentItem(image=ImageSource(data="R0lGODlh"))
    messages = (
        SystemText("Be brief.", "editor"),
        UserInput("Hello", "Ann"),
        AssistantAnswer("Hi", name="Bob"),
        UserInput([TextContentItem(text="Look"), image], "Ann"),
        AssistantAnswer("", (ToolCall(call_id="c", tool_name="add", arguments={}),), name="Bob"),
        ToolResult("c", "add", "3"),
        UserInput([image], "Ann"),
    )

    parameters = written(messages=messages, tools=(ADD,), verbosity="low")

    assert parameters["system"] == [{"text": "editor: Be brief."}]
    texts = [[block.get("text") for block in message["content"]] for message in parameters["messages"]]
    assert texts == [["Ann: Hello"], ["Bob: Hi"], ["Ann: Look", None], [None], [None, "Ann:", None]]
    assert "verbosity" not in json.dumps(parameters, default=str)


def test_any_object_is_asked_for_by_a_schema() -> None:
    form = written(response_format=JsonObjectResponseFormat())["outputConfig"]["textFormat"]

    assert json.loads(form["structure"]["jsonSchema"]["schema"]) == {"type": "object"}
