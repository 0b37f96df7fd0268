"""What sets a document apart from what the user says."""

from hashlib import sha256


def mark_document(text: str, mime_type: str) -> str:
    """Put a document between markers that its text cannot forge: both bear a boundary that the text does not hold.

    The boundary follows from the text, so the same conversation is the same prompt each time and providers' caches of
    prompts keep working.
    """
    boundary = find_boundary(text)
    kind = "".join(char for char in mime_type.partition(";")[0].lower() if char.isalnum() or char in "/+.-_")
    return f"<document boundary={boundary} type={kind}>\n{text}\n</document boundary={boundary}>"


def find_boundary(text: str) -> str:
    """Make 12 hexadecimal digits that do not occur in a text."""
    boundary = sha256(text.encode(errors="replace")).hexdigest()[:12]
    while boundary in text.lower():
        boundary = sha256(boundary.encode()).hexdigest()[:12]
    return boundary
