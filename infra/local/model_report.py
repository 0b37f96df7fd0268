"""The default model of a local cloud, and what its welcome says about the models."""

from collections.abc import Mapping
from dataclasses import dataclass

from infra.local.environment import openai_variable


@dataclass(frozen=True)
class ModelReport:
    """The default model with a note about its choice, if a server chose it, lines about models, and warnings."""

    default: str
    note: str | None = None
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


async def report_models(settings: Mapping[str, str], shell: Mapping[str, str]) -> ModelReport:
    """Look at the model servers of a shell, if it has any. `settings` are those of the functions."""
    default, is_chosen = settings["STINT_DEFAULT_MODEL"], bool(shell.get("STINT_DEFAULT_MODEL"))
    uses_openai = bool(openai_variable(shell)) or default.startswith("openai/")
    if not (uses_openai or settings.get("STINT_PROVIDERS")):
        return ModelReport(default)
    # The client of the product, which other starts do not need.
    from infra.local.model_advice import advise  # noqa: PLC0415
    from infra.local.model_check import ask_servers  # noqa: PLC0415

    return advise(await ask_servers(settings, uses_openai=uses_openai), default, is_chosen=is_chosen)
