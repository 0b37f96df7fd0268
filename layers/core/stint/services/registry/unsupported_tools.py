"""Tools of Llama Stack that this server refuses by name."""

from stint.domain.errors import NotSupported

NO_IMAGES = "use builtin::photogen, in a stack whose parameter ImageModel is set."
NOT_OFFERED = {
    "code_interpreter": "use builtin::code_interpreter, in a stack whose parameter CodeInterpreter is not none.",
    "image_generation": NO_IMAGES,
    "photogen": NO_IMAGES,
}
"""Parts of names, with the reasons."""


def refuse_not_offered(name: str) -> None:
    """Refuse a toolgroup or a tool. Raises NotSupported."""
    for part, reason in NOT_OFFERED.items():
        if part in name:
            raise NotSupported(f"{name!r} is not supported: {reason}")
