"""The query for content: its texts, or one that a model writes."""

from collections.abc import Callable, Sequence

from stint.dataclasses import dataclass
from stint.domain.content import Content, TextContentItem, items_of
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.memory_retrieval import CustomQueryGeneratorConfig
from stint.domain.llama_stack.rag import MAX_QUERY_LENGTH, DefaultRAGQueryGeneratorConfig, LLMRAGQueryGeneratorConfig
from stint.services.knowledge.text_models import TextModels
from stint.services.registry.tools import Tools

MODEL_SECONDS = 60.0
"""Maximum seconds of the model that writes a query."""


@dataclass(frozen=True, slots=True)
class QueryGenerator:
    """Makes the queries of a tenant. `get_tools` is called if a tool writes one."""

    models: TextModels
    get_tools: Callable[[], Tools] | None = None

    async def generate(
        self,
        content: Content,
        config: DefaultRAGQueryGeneratorConfig | LLMRAGQueryGeneratorConfig | CustomQueryGeneratorConfig,
    ) -> str:
        """Return the query for content.

        Raises:
            InvalidRequest: there is no text, or the model, the template or the custom generator cannot be used.
            ModelError: the model failed.
            ToolUnavailable: the custom generator failed.
        """
        texts = texts_of(content)
        if isinstance(config, CustomQueryGeneratorConfig):
            query = await self.ask_tool(config, texts)
        elif isinstance(config, LLMRAGQueryGeneratorConfig):
            from stint.jinja.template import fill_template  # noqa: PLC0415 - few queries have a template

            prompt = fill_template(config.template, texts)
            query = await self.models.ask(config.model, prompt, MODEL_SECONDS, MAX_QUERY_LENGTH)
        else:
            query = config.separator.join(texts)
        if not query.strip():
            raise InvalidRequest("There is no text to search for.", param="content")
        return query[:MAX_QUERY_LENGTH]

    async def ask_tool(self, config: CustomQueryGeneratorConfig, texts: Sequence[str]) -> str:
        """Return the query that a custom generator writes."""
        from stint.services.knowledge.custom_query_generator import CustomQueries  # noqa: PLC0415 - few agents have one

        if self.get_tools is None:
            raise InvalidRequest("A custom query generator is used in turns only.", param="query_generator_config")
        return await CustomQueries(self.get_tools).generate(config, texts)


def texts_of(content: Content) -> list[str]:
    """Return the texts of content, without images."""
    return [item.text for item in items_of(content) if isinstance(item, TextContentItem)]
