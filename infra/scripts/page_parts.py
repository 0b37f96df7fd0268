"""The parts of pages that scripts write: what is between `<!-- name -->` and `<!-- end of name -->`."""


class MissingPart(Exception):
    """A page has no such part. The message names both, and the marks to add."""


def replace_part(page: str, text: str, name: str, content: str) -> str:
    """Return the text of a page with another content of a part. Raises MissingPart."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, has_begin, rest = text.partition(begin)
    _, has_end, after = rest.partition(end)
    if not (has_begin and has_end):
        raise MissingPart(f"{page} has no part {name!r}. Add the lines {begin!r} and {end!r} where it belongs.")
    return f"{before}{begin}\n\n{content.strip()}\n\n{end}{after}"
