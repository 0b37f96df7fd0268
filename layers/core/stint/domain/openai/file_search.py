"""The tool that searches vector stores: its settings, its calls, and their results."""

from typing import Annotated, Literal, Self

from pydantic import Field, StrictFloat, StrictInt, model_validator

from stint.domain.approvals import ApprovalMode, ApprovalRequestId
from stint.domain.fields import LONG_TEXT, Omitted, invalid
from stint.domain.filters import Attributes, NewFilter
from stint.domain.schema import Request

MAX_STORES, MAX_QUERIES = 20, 50
"""Maximum vector stores of a tool, and queries of a call."""

StoreName = Annotated[str, Field(min_length=1, max_length=1000)]
Weight = Annotated[StrictFloat | StrictInt, Field(ge=0, le=1_000_000)]


class HybridSearch(Request):
    """The weights of the vectors' score and the text's. Only their ratio matters."""

    embedding_weight: Weight
    text_weight: Weight

    @model_validator(mode="after")
    def require_a_weight(self) -> Self:
        if not self.embedding_weight + self.text_weight:
            raise invalid("Both weights are 0. Set embedding_weight or text_weight.")
        return self


class FileSearchRanking(Request):
    """The ranking of results. Those below `score_threshold` are dropped."""

    ranker: Literal["none", "auto", "default-2024-11-15"] = "auto"
    score_threshold: Annotated[StrictFloat | StrictInt, Field(ge=0, le=1)] = 0
    hybrid_search: Omitted[HybridSearch] = None


class FileSearchTool(Request):
    """A search of vector stores that runs here. A store is named by its id, or as a vector db."""

    type: Literal["file_search"] = "file_search"
    vector_store_ids: Annotated[list[StoreName], Field(min_length=1, max_length=MAX_STORES)]
    filters: Omitted[NewFilter] = None
    max_num_results: Annotated[StrictInt, Field(ge=1, le=50)] = 10
    ranking_options: Omitted[FileSearchRanking] = None
    require_approval: ApprovalMode = None


class FileSearchChoice(Request):
    """The model must search the vector stores."""

    type: Literal["file_search"] = "file_search"


class FileSearchResult(Request):
    """A chunk that was found, with the file that contains it."""

    file_id: str
    filename: str = ""
    score: float = 0.0
    attributes: Attributes = Field(default_factory=dict)
    text: Annotated[str, Field(max_length=LONG_TEXT)] = ""


class FileSearchCall(Request):
    """A search of vector stores. `results` are returned if the request includes `file_search_call.results`."""

    type: Literal["file_search_call"] = "file_search_call"
    id: str = ""
    status: Literal["in_progress", "searching", "completed", "incomplete", "failed"] = "completed"
    queries: Annotated[list[str], Field(max_length=MAX_QUERIES)] = Field(default_factory=list)
    results: Annotated[list[FileSearchResult], Field(max_length=1000)] | None = None
    approval_request_id: ApprovalRequestId = None
