"""The use cases of one tenant that the routes of knowledge call."""

from dataclasses import dataclass

from stint.services.knowledge.files import Files
from stint.services.knowledge.uploads import Uploads


@dataclass(frozen=True, slots=True)
class KnowledgeServices:
    """The use cases. After `heartbeat_seconds` of silence, a connection gets a heartbeat."""

    files: Files
    uploads: Uploads
    heartbeat_seconds: float
