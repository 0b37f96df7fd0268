"""Image models of Bedrock and of servers like OpenAI's, against HTTP servers in their place."""

import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.domain.errors import InvalidRequest, ModelError
from stint.domain.inference import Usage
from stint.net.guard import Guard
from stint.providers.bedrock.client import connect
from stint.tools.image_generation.bedrock import BedrockImages
from stint.tools.image_generation.openai import OpenAIImages
from stint.tools.image_generation.port import MAX_IMAGE_BYTES, ImageOptions, ImageRefused
from stint.tools.image_generation.scripted import draw

PNG = draw("a fox", (64, 64))
ENCODED = base64.b64encode(PNG).decode()
CANVAS, TITAN, STABLE = (
    "amazon.nova-canvas-v1:0",
    "amazon.titan-image-generator-v2:0",
    "stability.stable-image-core-v1:1",
)
JPEG = b"\xff\xd8\xff" + bytes(20)


def reply(**body: Any) -> Reply:
    return Reply((json.dumps(body).encode(),))


@pytest.fixture
def server() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(lambda _: reply(images=[ENCODED], data=[{"b64_json": ENCODED}])) as server:
        yield server


@pytest.fixture
def bedrock(server: ScriptedHTTPServer, monkeypatch: pytest.MonkeyPatch) -> BedrockImages:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    return BedrockImages(lambda: connect("us-east-1"))


Connect = Callable[..., OpenAIImages]


@pytest.fixture
async def openai(server: ScriptedHTTPServer) -> AsyncIterator[Connect]:
    """Yield a function that connects to the server. Its arguments are the hosts from which images may be fetched."""
    made: list[OpenAIImages] = []

    def connect_to(*allowed: str) -> OpenAIImages:
        guard = Guard(allowed)
        fetch = partial(guard.fetch, max_bytes=MAX_IMAGE_BYTES)
        made.append(OpenAIImages(fetch, f"{server.url}/v1", "key", repeats=0))
        return made[-1]

    yield connect_to
    for each in made:
        await each.aclose()


@pytest.mark.parametrize("model", [CANVAS, TITAN])
async def test_amazons_models_get_a_task_with_size_and_quality(
    server: ScriptedHTTPServer, bedrock: BedrockImages, model: str
) -> None:
    options = ImageOptions.of({"size": "512x768", "quality": "high", "background": "auto", "output_format": "png"})

    image = await bedrock.generate(model, "a fox", options)

    assert (image.data, image.media_type, image.usage) == (PNG, "image/png", None)
    [request] = server.requests
    assert request.path == f"/model/{model.replace(':', '%3A')}/invoke"
    assert request.json() == {
        "taskType": "TEXT_IMAGE",
        "textToImageParams": {"text": "a fox"},
        "imageGenerationConfig": {"numberOfImages": 1, "width": 512, "height": 768, "quality": "premium"},
    }


async def test_stabilitys_models_get_the_ratio_of_the_size(server: ScriptedHTTPServer, bedrock: BedrockImages) -> None:
    server.script(reply(images=[base64.b64encode(JPEG).decode()], seeds=[1], finish_reasons=[None]))
    options = ImageOptions.of({"size": "1536x1024", "output_format": "jpeg"})

    image = await bedrock.generate(STABLE, "a fox", options)

    assert (image.data, image.media_type) == (JPEG, "image/jpeg")
    assert server.requests[0].json() == {"prompt": "a fox", "aspect_ratio": "3:2", "output_format": "jpeg"}


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (CANVAS, {"output_format": "webp"}, "output_format 'webp'"),
        (CANVAS, {"background": "transparent"}, "background 'transparent'"),
        (CANVAS, {"quality": "max"}, "quality 'max'"),
        (TITAN, {"output_compression": 50}, "output_compression 50"),
        (STABLE, {"quality": "high"}, "quality 'high'"),
        (STABLE, {"size": "1000x700"}, "Its ratios"),
        ("amazon.nova-lite-v1:0", {}, "not known to generate images"),
    ],
)
def test_what_a_model_of_bedrock_lacks_is_refused_by_name(
    bedrock: BedrockImages, model: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        bedrock.check(model, ImageOptions.of(options))


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (reply(finish_reasons=["Filter reason: prompt"]), ImageRefused, "refused: Filter reason: prompt"),
        (reply(images=[], error="Blocked by content filters"), ImageRefused, "refused: Blocked"),
        (reply(images=[]), ModelError, "no image"),
        (reply(images=["not base64!"]), ModelError, "no image"),
        (reply(images=[base64.b64encode(b"<html>" * 9).decode()]), ModelError, "no image"),
        (Reply((b"[1]",)), ModelError, "without an image"),
        (Reply((b"nothing",)), ModelError, "without an image"),
        (reply(images=["A" * (MAX_IMAGE_BYTES * 4 // 3 + 8)]), InvalidRequest, "at most 3000000"),
    ],
)
async def test_an_answer_of_bedrock_without_an_image_is_an_error(
    server: ScriptedHTTPServer, bedrock: BedrockImages, answer: Reply, error: type[Exception], words: str
) -> None:
    server.script(answer)

    with pytest.raises(error, match=words) as raised:
        await bedrock.generate(STABLE, "a fox", ImageOptions())
    assert raised.type is error


async def test_a_prompt_that_is_too_long_for_the_model_is_not_sent(
    server: ScriptedHTTPServer, bedrock: BedrockImages
) -> None:
    with pytest.raises(InvalidRequest, match="has 513 characters; this model accepts 512"):
        await bedrock.generate(TITAN, "x" * 513, ImageOptions())
    assert server.requests == []


async def test_a_server_like_openais_gets_the_options_that_are_set(server: ScriptedHTTPServer, openai: Connect) -> None:
    usage = {"input_tokens": 9, "output_tokens": 300, "total_tokens": 309}
    server.script(reply(data=[{"b64_json": ENCODED, "revised_prompt": "a red fox"}], usage=usage))
    options = ImageOptions.of({"size": "1024x1024", "quality": "low", "background": "auto", "output_compression": 50})

    image = await openai().generate("gpt-image-2", "a fox", options)

    assert (image.data, image.revised_prompt) == (PNG, "a red fox")
    assert image.usage == Usage(input_tokens=9, output_tokens=300, total_tokens=309)
    [request] = server.requests
    assert (request.path, request.headers.get("authorization") or request.headers["Authorization"]) == (
        "/v1/images/generations",
        "Bearer key",
    )
    given = {"size": "1024x1024", "quality": "low", "output_compression": 50}
    assert request.json() == {"model": "gpt-image-2", "prompt": "a fox", "n": 1, **given}


async def test_other_models_are_asked_for_base64(server: ScriptedHTTPServer, openai: Connect) -> None:
    await openai().generate("flux", "a fox", ImageOptions())

    assert server.requests[0].json()["response_format"] == "b64_json"


async def test_an_image_at_a_url_is_fetched_if_its_host_is_allowed(server: ScriptedHTTPServer, openai: Connect) -> None:
    url = f"{server.url}/image.png"
    server.script(reply(data=[{"url": url}]), Reply((PNG,)))

    assert (await openai("127.0.0.1").generate("flux", "a fox", ImageOptions())).data == PNG


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "{server}/image"])
async def test_an_image_at_a_url_inside_the_network_is_not_fetched(
    server: ScriptedHTTPServer, openai: Connect, url: str
) -> None:
    server.script(reply(data=[{"url": url.format(server=server.url)}]))

    with pytest.raises(InvalidRequest, match=r"may not be called|http"):
        await openai().generate("flux", "a fox", ImageOptions())
    assert len(server.requests) == 1


async def test_a_refusal_of_a_server_is_one(server: ScriptedHTTPServer, openai: Connect) -> None:
    server.script(Reply((b'{"error": {"message": "blocked"}}',), status=400))

    with pytest.raises(ImageRefused, match="blocked"):
        await openai().generate("flux", "a fox", ImageOptions())


@pytest.mark.parametrize(
    "body", [{}, {"data": []}, {"data": [{}]}, {"data": 3}, {"data": [[]]}, {"data": [{"b64_json": 5}]}]
)
async def test_an_answer_without_an_image_is_an_error(
    server: ScriptedHTTPServer, openai: Connect, body: dict[str, Any]
) -> None:
    server.script(reply(**body))

    with pytest.raises(ModelError, match="no image"):
        await openai().generate("flux", "a fox", ImageOptions())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"size": "large"}, "WIDTHxHEIGHT"),
        ({"size": "4096x4096"}, "WIDTHxHEIGHT"),
        ({"size": 7}, "size of an image must be a text"),
        ({"output_compression": True}, "must be a whole number"),
        ({"style": "vivid"}, "no option 'style'"),
    ],
)
def test_options_that_no_model_has_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        ImageOptions.of(given)
