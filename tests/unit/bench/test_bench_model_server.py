from infra.bench.model_server import running_model_server

from stint.domain.inference import Finished, InferenceRequest, TextChunk, UserInput
from stint.models.openai_compatible import OpenAICompatible


async def test_the_model_of_the_benchmark_answers_and_measures_its_reading() -> None:
    messages = tuple(UserInput(f"message {number}") for number in range(500))
    with running_model_server() as server:
        model = OpenAICompatible(server.url)
        for count in (1, 500):
            request = InferenceRequest(model="bench", messages=messages[:count])
            chunks = [chunk async for chunk in model.stream(request)]
            assert len(server.request["messages"]) == count
        await model.aclose()

    assert TextChunk("done") in chunks
    assert isinstance(chunks[-1], Finished)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.input_tokens == 500
    assert server.reading > 0
