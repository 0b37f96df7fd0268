"""The addresses of OpenAI's own servers."""

import re

OPENAI = re.compile(r"https://(?:\w+\.)?api\.openai\.com(?::443)?/", re.IGNORECASE)


def is_of_openai(base_url: str) -> bool:
    """Return whether a base URL is that of OpenAI's own API, in any of its regions."""
    return OPENAI.match(f"{base_url.strip().rstrip('/')}/") is not None
