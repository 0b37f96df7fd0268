import pytest

from stint.domain.misspellings import LONGEST_NAME, count_edits, find_intended
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.schema import known_fields

OF_OTHER_SERVERS = """
add_generation_prompt add_special_tokens allowed_token_ids api_key bad_words cache_prompt cache_salt caching
chat_template chat_template_kwargs citation_options compound_custom continue_final_message data_sources
documents draft_model drop_params dynatemp_range ebnf enable_thinking exclude_domains fallbacks
fallback_models format grammar guardrails guided_choice guided_decoding_backend guided_grammar guided_json
guided_regex guided_whitespace_pattern id_slot ignore_eos include_reasoning include_stop_str_in_output
json_schema keep_alive kv_transfer_params length_penalty logits_processors lora_path min_p min_tokens mirostat
mirostat_eta mirostat_tau mm_processor_kwargs n_keep n_predict n_probs num_retries options penalty_last_n
plugins priority prompt_logprobs provider random_seed reasoning reasoning_budget reasoning_format regex
repeat_last_n repeat_penalty repetition_penalty request_id return_token_ids return_tokens_as_token_ids rid
route safe_prompt samplers search_parameters search_settings separate_reasoning session_id session_params
skip_special_tokens spaces_between_special_tokens speed stop_sequences stop_token_ids structured_outputs tags
tfs_z think thinking thinking_budget timeout top_a top_k top_n_sigma transforms truncate_prompt_tokens ttl
typical_p usage use_beam_search user_id vllm_xargs xtc_probability xtc_threshold
"""
"""Fields of vLLM, SGLang, llama.cpp, Ollama, OpenRouter, Mistral, Groq, LiteLLM, Azure and others."""


@pytest.mark.parametrize(
    ("name", "intended"),
    [
        ("temperture", "temperature"),
        ("temprature", "temperature"),
        ("tempertaure", "temperature"),
        ("Temperature", "temperature"),
        ("max_ouput_tokens", "max_output_tokens"),
        ("maxOutputTokens", "max_output_tokens"),
        ("instrctions", "instructions"),
        ("instruction", "instructions"),
        ("previous_reponse_id", "previous_response_id"),
        ("tool_choise", "tool_choice"),
        ("tol_choice", "tool_choice"),
        ("tool", "tools"),
        ("metdata", "metadata"),
    ],
)
def test_a_misspelled_field_is_found(name: str, intended: str) -> None:
    known = known_fields(CreateResponse)
    assert known is not None

    assert find_intended(name, known.names) == intended


@pytest.mark.parametrize("kind", [CreateResponse, ChatCompletionRequest])
def test_fields_of_other_servers_are_no_misspellings(kind: type) -> None:
    known = known_fields(kind)
    assert known is not None

    unknown = {*OF_OTHER_SERVERS.split(), "models"} - known.names

    found = {name: find_intended(name, known.names - {"model"}) for name in unknown}

    assert [name for name, intended in found.items() if intended] == []


@pytest.mark.parametrize(
    ("name", "known"),
    [("top_k", "top_p"), ("min_tokens", "max_tokens"), ("n", "m"), ("nam", "name"), ("", "name"), ("a_b", "b_a")],
)
def test_short_words_must_be_equal(name: str, known: str) -> None:
    assert find_intended(name, [known]) is None


def test_a_long_name_is_compared_with_none() -> None:
    known = "a" * LONGEST_NAME

    assert find_intended(known + "a", [known]) is None


@pytest.mark.parametrize(
    ("word", "other", "edits"),
    [("", "", 0), ("ab", "", 2), ("abc", "acb", 1), ("abcd", "abd", 1), ("kitten", "sitting", 3), ("ca", "abc", 3)],
)
def test_edits_are_counted(word: str, other: str, edits: int) -> None:
    assert count_edits(word, other) == count_edits(other, word) == edits
