"""Tools of Llama Stack that this server refuses by name."""

from stint.domain.errors import NotSupported

NO_IMAGES = "this stack makes images only as builtin::photogen, if its parameter ImageModel names a model."
NOT_OFFERED = {
    "code_interpreter": (
        "this stack runs code only as builtin::code_interpreter, unless its parameter CodeInterpreter is none."
    ),
    "image_generation": NO_IMAGES,
    "photogen": NO_IMAGES,
}
"""Parts of names, with the reasons."""


def refuse_not_offered(name: str) -> None:
    """Refuse a toolgroup or a tool. Raises NotSupported."""
    for part, reason in NOT_OFFERED.items():
        if part in name:
            raise NotSupported(f"{name!r} is not offered: {reason}")
