from typing import Any

import pytest

from stint.domain.inference import Decoding, Usage
from stint.domain.llama_stack.sampling import SamplingParams


@pytest.mark.parametrize(
    ("fields", "decoding"),
    [
        ({}, Decoding(temperature=0.0)),
        ({"strategy": {"type": "top_p", "temperature": 0.7}}, Decoding(temperature=0.7, top_p=0.95)),
        ({"strategy": {"type": "top_k", "top_k": 9}}, Decoding(top_k=9)),
        ({"max_tokens": 5, "stop": ["END"]}, Decoding(temperature=0.0, max_tokens=5, stop=("END",))),
        ({"max_tokens": 0, "stop": [], "repetition_penalty": 1.0}, Decoding(temperature=0.0)),
        ({"repetition_penalty": 1.2}, Decoding(temperature=0.0, repetition_penalty=1.2)),
    ],
)
def test_sampling_parameters_say_what_to_decode_and_leave_out_what_has_no_effect(
    fields: dict[str, Any], decoding: Decoding
) -> None:
    assert SamplingParams.model_validate(fields).to_decoding() == decoding


def test_usages_are_added_field_by_field() -> None:
    usage = Usage.model_validate({name: place for place, name in enumerate(Usage.model_fields, start=1)})

    doubled = {name: 2 * place for place, name in enumerate(Usage.model_fields, start=1)}
    assert (usage + usage).model_dump() == doubled
