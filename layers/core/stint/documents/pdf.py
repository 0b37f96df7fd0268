"""Conversion of PDF to text."""

import logging
from io import BytesIO
from typing import Any

from stint.documents.served import Unreadable

MOST_UNPACKED = 10_000_000
"""Maximum unpacked bytes of one stream: a small PDF can contain gigabytes of zeros."""


def pdf_to_text(data: bytes, most_pages: int, most_characters: int) -> str:
    """Return the text of a PDF's pages, separated by empty lines. Layout and pictures are lost.

    A page of 4 KB can take minutes: call it where CPU time and memory are limited (`stint.documents.process`).

    Raises:
        Unreadable: it is broken, encrypted, has no text or too much.
        MemoryError: it takes more memory than there is.
    """
    import pypdf  # noqa: PLC0415 - 260 ms and 13 MB that only PDFs are to cost
    from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError  # noqa: PLC0415

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its warnings contain parts of the document
    try:
        with pypdf.apply_configuration(
            zlib_maximum_output_length=MOST_UNPACKED,
            lzw_maximum_output_length=MOST_UNPACKED,
            run_length_maximum_output_length=MOST_UNPACKED,
        ):
            reader = pypdf.PdfReader(BytesIO(data))
            # Many PDFs are encrypted with an empty password, which every program opens.
            if reader.is_encrypted and not reader.decrypt(""):
                raise Unreadable("the PDF is encrypted: remove its password, or send its text")
            return join_pages(reader, most_pages, most_characters)
    except (Unreadable, MemoryError):
        raise
    except (DependencyError, FileNotDecryptedError):
        raise Unreadable("the PDF is encrypted: remove its encryption, or send its text") from None
    except LimitReachedError:
        raise Unreadable("the unpacked PDF is too large: send a part, or its text", "document_too_large") from None
    except Exception as error:  # noqa: BLE001 - a broken file leads the library into errors of every kind
        raise Unreadable(f"the PDF is invalid ({type(error).__name__}): repair it, or send its text") from None


def join_pages(reader: Any, most_pages: int, most_characters: int) -> str:
    count = len(reader.pages)
    if count > most_pages:
        raise Unreadable(
            f"the PDF has {count} pages; at most {most_pages} are allowed: send a part", "document_too_large"
        )
    pages: list[str] = []
    size = 0
    for page in reader.pages:
        pages.append(page.extract_text().strip())
        # After each page, so that the text is never much longer than the limit.
        size += len(pages[-1])
        if size > most_characters:
            raise Unreadable(f"the PDF has more than {most_characters:,} characters: send a part", "document_too_large")
    text = "\n\n".join(page for page in pages if page)
    if not text:
        raise Unreadable("the PDF has no text; it may be scanned: send its text, or the pages as images")
    return text.encode(errors="replace").decode()  # a font may map to single surrogates, which UTF-8 cannot encode
