"""The use cases of one tenant that the routes of the API of October 2024 call."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from stint.apis.agents import AgentsServices
from stint.dataclasses import dataclass
from stint.services.inference.inference import ModelInference

if TYPE_CHECKING:  # loaded by the composition
    from stint.october_2024.bank_queries import BankQueries
    from stint.october_2024.banks import MemoryBanks
    from stint.services.knowledge.embeddings import TextEmbeddings


@dataclass(frozen=True)
class OctoberServices(AgentsServices):
    """The use cases. Each `make_` function makes its part once, at the first request that needs it."""

    make_model_inference: Callable[[], ModelInference]
    make_embeddings: "Callable[[], TextEmbeddings]"
    make_banks: "Callable[[], MemoryBanks]"
    make_bank_queries: "Callable[[], BankQueries]"
