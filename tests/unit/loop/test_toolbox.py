from stint.domain.content import Content
from stint.domain.inference import ToolSignature
from stint.domain.tools import ToolCall
from stint.loop.toolbox import Toolbox

TOOLBOX = Toolbox({name: ToolSignature(name, "", {}) for name in ("add", "sub")})


def call(name: str, arguments: str | None = None) -> ToolCall:
    return ToolCall(call_id="c", tool_name=name, arguments={} if arguments is None else arguments)


async def keep(_: Content) -> str:
    raise AssertionError("nothing is too long here")


def test_calls_of_known_tools_with_an_object_are_the_clients() -> None:
    assert TOOLBOX.is_for_client(call("add"))
    assert not TOOLBOX.is_for_client(call("nosuch"))
    assert not TOOLBOX.is_for_client(call("add", "[1]"))


async def test_a_refusal_tells_the_model_what_there_is() -> None:
    refusal = await TOOLBOX.respond(call("nosuch"), "k", keep)

    assert refusal.content == "There is no tool named 'nosuch'. The tools are: add, sub."
    assert refusal.metadata == {"error": True}


async def test_arguments_that_are_no_object_are_told_to_the_model() -> None:
    refusal = await TOOLBOX.respond(call("add", "[1]"), "k", keep)

    assert "are not a JSON object" in str(refusal.content)
    assert refusal.metadata == {"error": True}
