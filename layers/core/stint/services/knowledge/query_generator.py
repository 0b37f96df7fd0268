"""The query for content: its texts, or one that a model writes."""

from dataclasses import dataclass

from stint.domain.content import Content, TextContentItem, items_of
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.rag import DefaultRAGQueryGeneratorConfig, LLMRAGQueryGeneratorConfig
from stint.services.knowledge.prompt_template import fill_prompt_template
from stint.services.knowledge.text_models import TextModels

MODEL_SECONDS = 60.0
"""Maximum seconds of the model that writes a query."""

MAX_QUERY_LENGTH = 8_000
"""Maximum characters of a query. More would not fit into an embedding model."""


@dataclass(frozen=True, slots=True)
class QueryGenerator:
    """Makes the queries of a tenant."""

    models: TextModels

    async def generate(
        self, content: Content, config: DefaultRAGQueryGeneratorConfig | LLMRAGQueryGeneratorConfig
    ) -> str:
        """Return the query for content.

        Raises:
            InvalidRequest: there is no text, or the model or the template cannot be used.
            ModelError: the model failed.
        """
        texts = texts_of(content)
        if isinstance(config, LLMRAGQueryGeneratorConfig):
            prompt = fill_prompt_template(config.template, texts)
            query = await self.models.ask(config.model, prompt, MODEL_SECONDS, MAX_QUERY_LENGTH)
        else:
            query = config.separator.join(texts)
        if not query.strip():
            raise InvalidRequest("There is no text to search for.", param="content")
        return query[:MAX_QUERY_LENGTH]


def texts_of(content: Content) -> list[str]:
    """Return the texts of content, without images."""
    return [item.text for item in items_of(content) if isinstance(item, TextContentItem)]
