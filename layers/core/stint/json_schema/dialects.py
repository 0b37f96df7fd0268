"""The versions of JSON Schema, where they differ in the meaning of a keyword."""

from stint.json_schema.errors import SchemaError

DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020 = 4, 6, 7, 2019, 2020

VERSIONS = {
    "http://json-schema.org/draft-04/schema": DRAFT_4,
    "http://json-schema.org/draft-06/schema": DRAFT_6,
    "http://json-schema.org/draft-07/schema": DRAFT_7,
    "https://json-schema.org/draft/2019-09/schema": DRAFT_2019,
    "https://json-schema.org/draft/2020-12/schema": DRAFT_2020,
}
UNSUPPORTED = "http://json-schema.org/draft-03/schema"

SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames"), DRAFT_6),
    **dict.fromkeys(("if", "then", "else"), DRAFT_7),
    **dict.fromkeys(("$anchor", "$defs", "minContains", "maxContains", "unevaluatedItems"), DRAFT_2019),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "unevaluatedProperties"), DRAFT_2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef", "$dynamicAnchor"), DRAFT_2020),
    **dict.fromkeys(("$recursiveRef", "$recursiveAnchor"), DRAFT_2019),
}
UNTIL = {
    "dependencies": DRAFT_7,
    "additionalItems": DRAFT_2019,
    "$recursiveRef": DRAFT_2019,
    "$recursiveAnchor": DRAFT_2019,
}


def version_of(dialect: object) -> int:
    """Return the version that `$schema` names; 2020-12 if it is missing or unknown.

    Raises:
        SchemaError: it is not a string, or names an unsupported version.
    """
    if dialect is None:
        return DRAFT_2020
    if not isinstance(dialect, str):
        raise SchemaError("$schema is not a string")
    name = dialect.removesuffix("#")
    if name == UNSUPPORTED:
        raise SchemaError(f"$schema names an unsupported version; supported are {', '.join(VERSIONS)}")
    return VERSIONS.get(name, DRAFT_2020)


def is_keyword(name: str, version: int) -> bool:
    """Return whether a version has a keyword. In other versions it has no meaning."""
    return SINCE.get(name, DRAFT_4) <= version <= UNTIL.get(name, DRAFT_2020)
