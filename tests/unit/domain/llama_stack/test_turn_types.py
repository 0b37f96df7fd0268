from typing import Any

import pytest

from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.messages import UserMessage
from stint.domain.tools import ToolResponseMessage


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"role": "user", "content": "x"}, UserMessage),
        ({"content": "x"}, UserMessage),
        ({"role": None, "content": "x"}, UserMessage),
        ({"role": "tool", "call_id": "c", "content": "x"}, ToolResponseMessage),
        ({"call_id": "c", "content": "x"}, ToolResponseMessage),
    ],
)
def test_a_message_is_told_by_its_role_or_by_the_call_that_it_answers(message: dict[str, Any], kind: type) -> None:
    request = TurnCreateRequest.model_validate({"messages": [message]})

    assert isinstance(request.messages[0], kind)
