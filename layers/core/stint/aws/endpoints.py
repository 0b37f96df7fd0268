"""Addresses of AWS services."""

import re
from urllib.parse import urlsplit

from stint.aws.environment import AwsEnvironment
from stint.aws.errors import AwsConfigurationError
from stint.http1.urls import Origin

PARTITIONS = {
    re.compile(r"cn-\w+-\d+"): ("amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    re.compile(r"eusc-(de)-\w+-\d+"): ("amazonaws.eu", "api.amazonwebservices.eu"),
    re.compile(r"us-iso-\w+-\d+"): ("c2s.ic.gov", "api.aws.ic.gov"),
    re.compile(r"us-isob-\w+-\d+"): ("sc2s.sgov.gov", "api.aws.scloud"),
    re.compile(r"eu-isoe-\w+-\d+"): ("cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
    re.compile(r"us-isof-\w+-\d+"): ("csp.hci.ic.gov", "api.aws.hci.ic.gov"),
}
"""The DNS suffixes of regions in other partitions: for IPv4, and for both IPv4 and IPv6."""

HOST = re.compile(r"[0-9A-Za-z._:-]+")

COMMERCIAL = ("amazonaws.com", "api.aws")
"""The DNS suffixes of the partitions aws and aws-us-gov."""


def parse_endpoint(name: str, url: str) -> Origin:
    """Return the endpoint of a URL without a path. Errors have the name of its variable, and nothing of the URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _refused(name, "has an invalid host or port") from None
    if parts.scheme not in ("http", "https") or not host:
        raise _refused(name, "is not an http or https URL with a host")
    if not HOST.fullmatch(host):
        raise _refused(name, "has an invalid host or port")
    if "@" in parts.netloc:
        raise _refused(name, "has a user or password, which is not supported")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise _refused(name, "has a path, query or fragment, which is not supported")
    return Origin(parts.scheme, host, port or (443 if parts.scheme == "https" else 80))


def _refused(name: str, problem: str) -> AwsConfigurationError:
    return AwsConfigurationError(f"{name} {problem}. Set it to http(s)://host or http(s)://host:port.")


def dynamodb_endpoint(environment: AwsEnvironment) -> Origin:
    """Return the endpoint of DynamoDB that the environment selects."""
    fips, dual = environment.is_true("AWS_USE_FIPS_ENDPOINT"), environment.is_true("AWS_USE_DUALSTACK_ENDPOINT")
    if environment.get("AWS_ACCOUNT_ID_ENDPOINT_MODE").lower() == "required":
        raise AwsConfigurationError("AWS_ACCOUNT_ID_ENDPOINT_MODE=required is not supported. Use preferred.")
    name = environment.endpoint_variable("DYNAMODB")
    if name or environment.region == "local":
        if fips or dual:
            flag = "AWS_USE_FIPS_ENDPOINT" if fips else "AWS_USE_DUALSTACK_ENDPOINT"
            raise AwsConfigurationError(f"{flag} has no effect on a configured endpoint URL. Unset one of them.")
        return parse_endpoint(name, environment.get(name)) if name else Origin("http", "localhost", 8000)
    # In GovCloud, the ordinary endpoint is the one that has FIPS.
    fips_name = "dynamodb-fips" if dual or not environment.region.startswith("us-gov-") else "dynamodb"
    return _regional_endpoint(fips_name if fips else "dynamodb", environment.region, dual=dual)


def service_endpoint(environment: AwsEnvironment, service: str) -> Origin:
    """Return the endpoint of another service, such as `sts`, in the region of the environment."""
    if name := environment.endpoint_variable(service.upper()):
        return parse_endpoint(name, environment.get(name))
    # In GovCloud, the ordinary endpoints are those that have FIPS, except that of S3.
    ordinary = service != "s3" and environment.region.startswith("us-gov-")
    fips = environment.is_true("AWS_USE_FIPS_ENDPOINT") and not ordinary
    name = f"{service}-fips" if fips else service
    if service == "s3" and environment.is_true("AWS_USE_DUALSTACK_ENDPOINT"):
        name += ".dualstack"
    return _regional_endpoint(name, environment.region, dual=False)


def _regional_endpoint(name: str, region: str, *, dual: bool) -> Origin:
    suffixes = next((found for regions, found in PARTITIONS.items() if regions.fullmatch(region)), COMMERCIAL)
    return Origin("https", f"{name}.{region}.{suffixes[dual]}", 443)
