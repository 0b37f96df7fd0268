"""Tools of Llama Stack that this server refuses by name."""

from stint.domain.errors import NotSupported

NOT_OFFERED = ("code_interpreter", "image_generation")


def refuse_not_offered(name: str) -> None:
    """Refuse a toolgroup or a tool. Raises NotSupported."""
    if any(offer in name for offer in NOT_OFFERED):
        raise NotSupported(
            f"{name!r} is not offered: this stack makes no images, and runs code only as builtin::code_interpreter, "
            "unless its parameter CodeInterpreter is none."
        )
