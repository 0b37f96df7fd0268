"""The default model of a local cloud, and what its welcome says about the models."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from infra.local.environment import OFFLINE_MODEL, openai_variable


@dataclass(frozen=True)
class ModelReport:
    """The default model with a note about its choice, if a server chose it, lines about models, and warnings.

    `listed` has ids for STINT_MODELS. `stand_in` is the model of the example while the default one does not work.
    """

    default: str
    note: str | None = None
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    stand_in: str = ""

    @property
    def example(self) -> str:
        """Return the model of the request that the welcome shows."""
        return self.stand_in or self.default


async def report_models(settings: Mapping[str, str], shell: Mapping[str, str]) -> ModelReport:
    """Look at the model servers of a shell, if it has any. `settings` are those of the functions."""
    default, is_chosen = settings["STINT_DEFAULT_MODEL"], bool(shell.get("STINT_DEFAULT_MODEL"))
    uses_openai = bool(openai_variable(shell)) or default.startswith("openai/")
    if not (uses_openai or settings.get("STINT_PROVIDERS")):
        return ModelReport(default)
    # The client of the product, which other starts do not need.
    from infra.local.model_servers.advice import advise  # noqa: PLC0415
    from infra.local.model_servers.check import ask_servers  # noqa: PLC0415
    from infra.local.model_servers.listed_models import select_models  # noqa: PLC0415

    from stint.settings import read_settings  # noqa: PLC0415

    answers = await ask_servers(settings, uses_openai=uses_openai)
    stand_in = OFFLINE_MODEL if read_settings(settings).scripted_models else ""
    report = advise(answers, default, is_chosen=is_chosen, stand_in=stand_in)
    return report if shell.get("STINT_MODELS") else replace(report, listed=select_models(answers, report.default))
