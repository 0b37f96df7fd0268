"""Large settings, read from the objects that they name, once in a process.

A reference names a version or a hash, so that an object that was changed is not read before the next deployment.
Otherwise processes would change at different times, and no rollback would bring the earlier object back.

The requests are signed by `stint.aws`, because a client of botocore takes a third of a second in each cold start.
AppConfig would need an extension, and polls.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from stint.aws.credentials import CredentialsError
from stint.aws.credentials_chain import choose_provider
from stint.aws.environment import read_environment
from stint.aws.errors import AwsConfigurationError
from stint.aws.stored_objects import ObjectUnavailable, StoredObjects
from stint.domain.setting_objects import MOST_BYTES, SettingObject, parse_reference
from stint.settings import Settings, SettingsError, replace_texts, variable_of

SECONDS = 8.0
"""Time for all objects. Lambda ends a start after 10 s."""


def read_large_settings(settings: Settings) -> Settings:
    """Return settings with the texts of the objects that they name. Raises SettingsError."""
    return replace_texts(settings, read_texts(tuple(settings.references.items())))


@cache
def read_texts(references: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Read the objects of settings, by name. A thread does, since an event loop may run in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, read_all(dict(references))).result()


async def read_all(references: Mapping[str, str]) -> dict[str, str]:
    """Read the objects at the same time. Raises SettingsError, which names all that cannot be read."""
    try:
        environment = read_environment()
        objects = StoredObjects(environment, choose_provider(environment))
    except (AwsConfigurationError, CredentialsError) as error:
        raise SettingsError(f"{variables(references)} cannot be read: {error}") from None
    try:
        async with asyncio.timeout(SECONDS):
            found = await asyncio.gather(*(read_text(objects, text) for text in references.values()))
    except TimeoutError:
        raise SettingsError(f"{variables(references)} could not be read in {SECONDS:.0f} s.") from None
    named = dict(zip(references, found, strict=True))
    if faults := [f"{variable_of(name)}: {text}" for name, text in named.items() if isinstance(text, Fault)]:
        raise SettingsError(f"Settings cannot be read. {' '.join(faults)}")
    return named


def variables(references: Mapping[str, str]) -> str:
    return ", ".join(map(variable_of, references))


class Fault(str):
    """The reason why an object has no text."""


async def read_text(objects: StoredObjects, reference: str) -> str:
    """Return the text of an object, or the reason why there is none."""
    named = parse_reference(reference)
    try:
        content = await read_content(objects, named)
    except (ObjectUnavailable, AwsConfigurationError) as error:
        return Fault(
            f"{reference} cannot be read: {error}. Check the object, and the function's permission to read it."
        )
    if named.sha256 and hashlib.sha256(content).hexdigest() != named.sha256:
        return Fault(f"{reference} has another SHA-256. Deploy the hash of the content that you want.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return Fault(f"{reference} is not UTF-8.")


async def read_content(objects: StoredObjects, named: SettingObject) -> bytes:
    if named.bucket:
        return await objects.read_object(named.bucket, named.name, named.version, MOST_BYTES)
    return await objects.read_parameter(named.name, named.version, MOST_BYTES)
