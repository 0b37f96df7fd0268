"""The documents of a turn, read before the turn begins."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from stint.documents.limits import Limits
from stint.documents.reading import Fetch, read_documents
from stint.domain.content import Content, ImageContentItem, ImageSource, items_of
from stint.domain.errors import InvalidRequest
from stint.domain.turns import Document, DocumentText
from stint.models.images import read_image

CheckUrl = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reader:
    """Turns documents into text, whether they were sent along or lie behind a URL, and looks at images."""

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
        """Refuse images that no provider could read, since each later turn of the session would send them again, and
        those at places that callers may not reach: a provider in the private network would fetch them.

        Raises:
            InvalidRequest: names the reason; a host that does not answer is left to the provider.
        """
        for content in contents:
            for item in items_of(content):
                if isinstance(item, ImageContentItem):
                    await self.check_image(item.image)

    async def check_image(self, source: ImageSource) -> None:
        image = read_image(source)
        if not isinstance(image, str):
            return
        try:
            await self.check_url(image)
        except InvalidRequest as error:
            if error.code == "url_not_allowed":
                raise InvalidRequest(error.message, code=error.code, param="messages") from error
