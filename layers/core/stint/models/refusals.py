"""Reading what providers say when they refuse, whichever protocol they speak."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_MESSAGE = 500
TOO_LONG = re.compile(
    r"context[ _-](?:length|window|size)|maximum (?:context|model|prompt) length|prompt is too long"
    r"|too many input tokens|input tokens exceed|number of input tokens"
    r"|input (?:is too long|length (?:exceeds|and `?max))",
    re.IGNORECASE,
)


def is_about_length(text: str) -> bool:
    """Tell whether the messages did not fit, in the words of OpenAI, vLLM, Ollama, llama.cpp and Bedrock."""
    return TOO_LONG.search(text) is not None


def shorten(message: str) -> str:
    """Cut a message after 500 characters: some providers answer with whole pages."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}..."


def parse_retry_after(value: str | None) -> float | None:
    """Read a Retry-After, in seconds or as a date (RFC 9110, section 10.2.3), as seconds from here."""
    if value is None:
        return None
    if re.fullmatch(r"\d+(?:\.\d+)?", value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max((moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
