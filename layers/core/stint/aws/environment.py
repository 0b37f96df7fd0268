"""The environment variables that all AWS clients have. They are read when a client is made."""

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stint.aws.errors import AwsConfigurationError
from stint.dataclasses import dataclass, field

if TYPE_CHECKING:
    from stint.http1.proxies import Proxy

REGION = re.compile(r"[a-z0-9][a-z0-9-]{0,61}[a-z0-9]")


@dataclass(frozen=True)
class AwsEnvironment:
    """Variables by name. The representation hides them, since some are secrets."""

    variables: Mapping[str, str] = field(repr=False)

    def get(self, name: str) -> str:
        """Return a variable; an empty one is the same as none."""
        return self.variables.get(name, "")

    def is_true(self, name: str) -> bool:
        return self.get(name).lower() == "true"

    @property
    def region(self) -> str:
        """Return the region: of the environment, or else of the profile. Raises AwsConfigurationError."""
        region = self.get("AWS_REGION") or self.get("AWS_DEFAULT_REGION") or self._region_of_profile()
        if not REGION.fullmatch(region):
            raise AwsConfigurationError("There is no AWS region, or a malformed one. Set AWS_REGION.")
        return region

    def proxy(self, scheme: str, host: str, port: int) -> "Proxy | None":
        """Return the proxy for a server, or None."""
        if not self.get(f"{scheme}_proxy") and not self.get(f"{scheme.upper()}_PROXY"):
            return None
        from stint.http1.proxies import InvalidProxy, Proxies  # noqa: PLC0415 - few processes have a proxy

        try:
            return Proxies.of(self.variables).choose(scheme, host, port)
        except InvalidProxy as error:
            raise AwsConfigurationError(str(error)) from error

    def endpoint_variable(self, service: str) -> str:
        """Return the name of the variable with the configured URL of a service, or an empty text."""
        if self.is_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"):
            return ""
        names = (f"AWS_ENDPOINT_URL_{service}", "AWS_ENDPOINT_URL")
        return next((name for name in names if self.get(name)), "")

    def _region_of_profile(self) -> str:
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - slow, and no function needs it
        from botocore.session import get_session  # noqa: PLC0415

        try:
            return str(get_session().get_config_variable("region") or "")
        except BotoCoreError as error:  # an unknown profile, or a file that cannot be parsed
            raise AwsConfigurationError(f"{error}. Correct AWS_PROFILE or the file, or set AWS_REGION.") from error


def read_environment() -> AwsEnvironment:
    """Return the variables as they are now."""
    return AwsEnvironment(dict(os.environ))
