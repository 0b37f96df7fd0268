"""Builders of PDF files."""

import zlib
from io import BytesIO

import pypdf


def make_pdf(*pages: str) -> bytes:
    """Return a file with a line of text on each page."""
    streams = [f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode() for text in pages]
    return write_pdf([(b"", stream) for stream in streams])


def make_bomb(size: int) -> bytes:
    """Return a file of one page whose compressed stream expands to `size` bytes."""
    return write_pdf([(b"/Filter /FlateDecode ", zlib.compress(b" " * size, 9))])


def make_encrypted(text: str, password: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=BytesIO(make_pdf(text)))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    written = BytesIO()
    writer.write(written)
    return written.getvalue()


def make_half_character() -> bytes:
    """Return a file whose font maps A to half of a surrogate pair."""
    ranges = b"1 begincodespacerange\n<00> <FF>\nendcodespacerange\n"
    return write_pdf([(b"", b"BT /F1 12 Tf 72 700 Td (BAB) Tj ET")], ranges + b"1 beginbfchar\n<41> <D800>\nendbfchar")


def write_pdf(streams: list[tuple[bytes, bytes]], to_unicode: bytes = b"") -> bytes:
    """Return a file of pages with these filters and contents; `to_unicode` maps the font's codes."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * place) for place in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, len(streams)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode %d 0 R >>" % (4 + 2 * len(streams)),
    ]
    for place, (filtered, stream) in enumerate(streams):
        resources = b"<< /Font << /F1 3 0 R >> >>"
        content = b"/Resources %b /Contents %d 0 R" % (resources, 5 + 2 * place)
        objects.append(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] %b >>" % content)
        objects.append(b"<< %b/Length %d >>\nstream\n%b\nendstream" % (filtered, len(stream), stream))
    objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(to_unicode), to_unicode))
    return write_objects(objects)


def write_objects(objects: list[bytes]) -> bytes:
    """Return a file of these objects, with their offsets and the trailer (ISO 32000-1, section 7.5)."""
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
    return body + head + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(body))
