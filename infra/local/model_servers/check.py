"""The look at the model servers of the shell, before `make run` is ready.

Their lists of models are requested all at once. An address that has none may lack its /v1, so the likely ones of the
same server are tried, too.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from infra.local.environment import proxy_exceptions
from infra.local.model_servers.model_list import ModelList, make_client, request_list

from stint.bootstrap.model_servers import ModelServer, read_model_servers
from stint.http1.client import HttpClient
from stint.providers.openai.addresses import is_of_openai
from stint.settings import Settings, is_reference, read_settings
from stint.tools.masking import mask_url

SECONDS = 3.0
WITHOUT_LIST = (404, 405, 501)
OPERATION = re.compile(r"/(?:chat/completions|completions|responses|embeddings|models)$")
VERSION = re.compile(r"/v\d\w*$")


@dataclass(frozen=True)
class Server:
    """A model server of the shell, and the settings that have its address and its key."""

    provider: str
    base_url: str
    key: str = field(repr=False)
    url_setting: str = "OPENAI_BASE_URL"
    key_setting: str = "OPENAI_API_KEY"
    has_secret: bool = False
    """The key is in a secret, which only the functions read."""

    @property
    def shown(self) -> str:
        """Return the address without credentials."""
        return mask_url(self.base_url)

    @property
    def is_of_openai(self) -> bool:
        return is_of_openai(self.base_url)


@dataclass(frozen=True)
class Answer:
    """The answer of a server, and a better address of it, at which it has a list or refuses the key."""

    models: ModelList
    better: str = ""


async def ask_servers(settings: Mapping[str, str], *, uses_openai: bool) -> dict[Server, Answer | None]:
    """Request the models of each server, for `SECONDS` at most. None: it needs a key, and has none here."""
    servers = find_servers(read_settings(settings), uses_openai=uses_openai)
    direct = proxy_exceptions(settings)
    client = make_client({**settings, "NO_PROXY": direct, "no_proxy": direct}, SECONDS)
    deadline = asyncio.get_running_loop().time() + SECONDS
    answers = await asyncio.gather(*(Check(client, each, deadline).run() for each in servers))
    await client.close()
    return dict(zip(servers, answers, strict=True))


def find_servers(settings: Settings, *, uses_openai: bool) -> list[Server]:
    """Return the servers with OpenAI's API: that of `openai/` models if it is used, and those of STINT_PROVIDERS."""
    url, key = settings.openai_base_url.strip().rstrip("/"), settings.openai_api_key.get_secret_value().strip()
    own = [Server("openai", url, key, has_secret=bool(settings.openai_secret_arn))] if uses_openai else []
    known = () if is_reference(settings.providers) else read_model_servers(settings)
    return own + [name_server(each, settings) for each in known if each.kind == "openai"]


def name_server(server: ModelServer, settings: Settings) -> Server:
    """Return a server of STINT_PROVIDERS."""
    return Server(
        server.id,
        server.base_url.rstrip("/"),
        settings.key_in(server.key_variable).strip() if server.key_variable else "",
        url_setting=server.setting_names.base_url,
        key_setting=server.key_variable or server.setting_names.key,
        has_secret=bool(server.secret_arn),
    )


@dataclass(frozen=True)
class Check:
    """The requests to a server, until a time of the event loop's clock."""

    client: HttpClient
    server: Server
    deadline: float

    async def run(self) -> Answer | None:
        """Return the answer of the server; None if it is not requested without a key."""
        if not self.server.key and (self.server.has_secret or self.server.is_of_openai):
            return None
        models = await self.ask(self.server.base_url)
        is_elsewhere = models.status in WITHOUT_LIST or models.is_other
        return Answer(models, await self.find_better() if is_elsewhere else "")

    async def find_better(self) -> str:
        """Return an address of the server that has the list, or else one that refuses the key, or an empty text."""
        urls = likely_urls(self.server.base_url)
        answers = dict(zip(urls, await asyncio.gather(*map(self.ask, urls)), strict=True))
        lists = [url for url, models in answers.items() if models.ids is not None]
        refusals = [url for url, models in answers.items() if models.about_key]
        return next(iter(lists + refusals), "")

    async def ask(self, base_url: str) -> ModelList:
        return await request_list(self.client, base_url, self.server.key, self.deadline)


def likely_urls(base_url: str) -> list[str]:
    """Return the addresses that are probably meant: without the path of an operation, and with /v1."""
    parts = urlsplit(base_url)
    cut = OPERATION.sub("", base_url)
    versioned = [] if VERSION.search(cut) else [f"{cut}/v1"]
    urls = [cut, *versioned, f"{parts.scheme}://{parts.netloc}/v1"]
    return [url for url in dict.fromkeys(urls) if url != base_url]
