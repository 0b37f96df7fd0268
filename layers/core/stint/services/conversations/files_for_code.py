"""The files of an input that code reads."""

import json
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from stint.documents.mime_types import parse_mime_type
from stint.documents.served import Originals
from stint.tools.code_interpreter.files import make_name

HAS_FILE = "The code interpreter has this file as {}."
NO_TEXT = "Its text is not shown."


def name_files(originals: Originals, wanted: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Name the files that are kept, and return the texts with these names. `wanted` are names or URLs."""
    read = list(texts)
    for index, raw in sorted(originals.bodies.items()):
        is_url = wanted[index][:8].lower().startswith(("http://", "https://"))
        name = unquote(urlsplit(wanted[index]).path) if is_url else wanted[index]
        media_type = parse_mime_type(raw.content_type).essence
        originals.names[index] = make_name(name, f"file-{index + 1}", media_type, list(originals.names.values()))
        note = HAS_FILE.format(json.dumps(originals.names[index], ensure_ascii=False))
        read[index] = f"{note} {NO_TEXT}" if index in originals.errors else f"{note}\n{texts[index]}"
    return read
