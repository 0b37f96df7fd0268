"""The documents of a turn, read before the turn begins."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from stint.documents.reading import Fetch, Limits, read_documents
from stint.domain.content import Content, ImageContentItem, items_of
from stint.domain.errors import InvalidRequest
from stint.domain.turns import Document, DocumentText

CheckUrl = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reader:
    """Turns documents into text, whether they were sent along or lie behind a URL, and looks at the URLs of images."""

    fetch: Fetch
    check_url: CheckUrl
    limits: Limits = field(default_factory=Limits)

    async def read(self, documents: Sequence[Document]) -> list[DocumentText]:
        """Give the texts of documents: what is stored, and what later turns see again.

        Raises:
            InvalidRequest: one of them cannot be read; names it.
        """
        if not documents:
            return []
        texts = await read_documents(documents, self.fetch, self.limits)
        pairs = zip(documents, texts, strict=True)
        return [DocumentText(text=text, mime_type=document.mime_type) for document, text in pairs]

    async def check_images(self, contents: Iterable[Content]) -> None:
        """Refuse images at places that callers may not reach: a provider in the private network would fetch them.

        Raises:
            InvalidRequest: (`url_not_allowed`) a host that does not answer is left to the provider.
        """
        for content in contents:
            for item in items_of(content):
                url = item.image.url.uri if isinstance(item, ImageContentItem) and item.image.url else ""
                if url.lower().startswith(("http://", "https://")):
                    await self.check_image(url)

    async def check_image(self, url: str) -> None:
        try:
            await self.check_url(url)
        except InvalidRequest as error:
            if error.code == "url_not_allowed":
                raise
