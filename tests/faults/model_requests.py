"""The requests that forked processes send to the scripted model."""

import json
import os
from pathlib import Path
from typing import Any

from stint.domain.inference import UserInput
from stint.models.scripted.messages import message_text
from stint.models.scripted.model import Scripted

FILE = "STINT_FAULTS_MODEL_REQUESTS"
"""The environment variable with the file to which the requests are appended."""


class ModelRequests:
    """The file with the requests, each as the list of the user's messages."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)

    def find(self, last: str) -> list[str] | None:
        """Return the user's messages in the newest request that ends with one, or None."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        requests: list[list[str]] = [json.loads(line) for line in lines]
        return next((texts for texts in reversed(requests) if texts[-1:] == [last]), None)


def note_model_requests() -> None:
    """Let the scripted model append each request to the file that the environment names."""
    scripted: Any = Scripted
    stream = scripted.stream

    def note_and_stream(self: Scripted, request: Any) -> Any:
        texts = [message_text(each) for each in request.messages if isinstance(each, UserInput)]
        with Path(os.environ[FILE]).open("a") as file:
            file.write(json.dumps(texts) + "\n")
        return stream(self, request)

    scripted.stream = note_and_stream
