"""References of large settings to objects of S3 and parameters of SSM, which they name with a version or a hash."""

import re

from stint.dataclasses import dataclass

MOST_BYTES = 1_000_000
"""Maximum size of an object."""

EXAMPLES = "s3://bucket/prices.json?versionId=... or ssm:///stint/prices?version=3, and/or sha256=... for each"
REFERENCE = re.compile(r"(s3|ssm)://([^/?#]*)(/[^?#]*)\?([^#]*)")
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
NAME = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
PINS = {
    "versionId": re.compile(r"(?!null$)[A-Za-z0-9._-]{1,1024}"),
    "version": re.compile(r"[1-9][0-9]{0,8}"),
    "sha256": re.compile(r"[0-9a-f]{64}"),
}
"""What names the content of an object. A bucket without versions has the version `null`, which can be replaced."""


@dataclass(frozen=True)
class SettingObject:
    """An object of a bucket, or a parameter of SSM if `bucket` is empty. `name` begins with a slash."""

    bucket: str
    name: str
    version: str = ""
    sha256: str = ""


def parse_reference(text: str) -> SettingObject:
    """Parse a reference. Raises ValueError if it is malformed, or names neither a version nor a hash."""
    match = REFERENCE.fullmatch(text)
    if match is None:
        raise ValueError(f"It is not a reference such as {EXAMPLES}.")
    service, bucket, name, query = match.groups()
    if (not BUCKET.fullmatch(bucket) if service == "s3" else bucket) or not NAME.fullmatch(name):
        raise ValueError("The name has characters other than letters, digits and ._~-/, or an empty or missing part.")
    if {".", ".."} & set(name.split("/")):
        raise ValueError("The name has a part . or ..")
    pins = dict(each.partition("=")[::2] for each in query.split("&"))
    version = "versionId" if service == "s3" else "version"
    if not pins.keys() <= {version, "sha256"} or len(pins) != query.count("&") + 1:
        raise ValueError(f"After the name, only {version} and sha256 are known, once each.")
    for pin, value in pins.items():
        if not PINS[pin].fullmatch(value):
            raise ValueError(f"Its {pin} is malformed. A bucket without versions needs a sha256, in lower case.")
    return SettingObject(bucket, name, pins.get(version, ""), pins.get("sha256", ""))
