"""Markers that separate a document from the user's own words."""

from hashlib import sha256

DOCUMENT = "<document boundary="
"""The begin of a marked document."""


def mark_document(text: str, mime_type: str) -> str:
    """Put a document between markers that its text cannot forge: both contain a boundary that the text does not.

    The boundary is derived from the text. The same conversation therefore makes the same prompt, and providers' prompt
    caches keep working.
    """
    boundary = find_boundary(text)
    kind = "".join(char for char in mime_type.partition(";")[0].lower() if char.isalnum() or char in "/+.-_")
    return f"{DOCUMENT}{boundary} type={kind}>\n{text}\n</document boundary={boundary}>"


def find_boundary(text: str) -> str:
    """Return 12 hexadecimal digits that do not occur in a text."""
    # A random boundary would change the prompt with each turn.
    boundary = sha256(text.encode(errors="replace")).hexdigest()[:12]
    while boundary in text.lower():
        boundary = sha256(boundary.encode()).hexdigest()[:12]
    return boundary
