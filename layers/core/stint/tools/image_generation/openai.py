"""Images over HTTP: OpenAI, and servers with the same `POST /images/generations`."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, Unpack

from stint.dataclasses import asdict
from stint.domain.errors import ModelError
from stint.domain.inference import Usage
from stint.providers.openai.server import OpenAIServer, ReadKey, ServerOptions
from stint.tools.image_generation.answers import NO_IMAGE, check_image, read_base64
from stint.tools.image_generation.port import GeneratedImage, ImageOptions, as_refusal

ALWAYS_BASE64 = ("gpt-image", "chatgpt-image")
"""Beginnings of the names of models that refuse `response_format`, and always answer with base64."""


class FetchedImage(Protocol):
    """An image that was fetched."""

    @property
    def body(self) -> bytes:
        """Return its bytes."""
        ...


Fetch = Callable[[str], Awaitable[FetchedImage]]
"""A function that fetches a URL through the guard, with a limit on the size."""


class OpenAIImages:
    """The models of `POST {base_url}/images/generations`. See `OpenAIServer` for the key, the `options` and retries.

    A server may answer with a URL, which `fetch` reads.
    """

    def __init__(
        self, fetch: Fetch, base_url: str, api_key: str | ReadKey | None = None, **options: Unpack[ServerOptions]
    ) -> None:
        self._fetch = fetch
        self.server = OpenAIServer(base_url, api_key, **options)

    def check(self, model_id: str, options: ImageOptions, /) -> None:
        """Accept every option: the models have different ones, and the server refuses others; see the port."""

    async def generate(self, model_id: str, prompt: str, options: ImageOptions, /) -> GeneratedImage:
        """Generate an image; see the port."""
        given = {name: value for name, value in asdict(options).items() if value is not None}
        body = {"model": model_id, "prompt": prompt, "n": 1, **given}
        if not model_id.startswith(ALWAYS_BASE64):
            body["response_format"] = "b64_json"
        with as_refusal():
            answer = await self.server.post("images/generations", body)
        try:
            image = dict(answer["data"][0])
            counts = dict(answer.get("usage") or {})
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ModelError(NO_IMAGE) from error
        revised = image.get("revised_prompt")
        return GeneratedImage(
            await self._read(image), revised if isinstance(revised, str) else None, read_usage(counts)
        )

    async def aclose(self) -> None:
        """Close the idle connections, also those of others that share the client."""
        await self.server.client.close()

    async def _read(self, image: dict[str, Any]) -> bytes:
        url = image.get("url")
        if image.get("b64_json") is None and isinstance(url, str):
            return check_image((await self._fetch(url)).body)
        return read_base64(image.get("b64_json"))


def read_usage(counts: dict[str, Any]) -> Usage | None:
    """Return the tokens of an answer; None if it has none."""
    tokens = [counts.get("input_tokens"), counts.get("output_tokens")]
    if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in tokens):
        return None
    read, written = (int(each or 0) for each in tokens)
    return Usage(input_tokens=read, output_tokens=written, total_tokens=read + written)
