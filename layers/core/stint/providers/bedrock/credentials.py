"""The credentials of calls to Bedrock."""

import boto3
from botocore.exceptions import NoCredentialsError, NoRegionError

from stint.providers.bedrock.errors import ERRORS, explain


def find_credentials(region: str | None = None) -> str:
    """Find the credentials, and return the region of the calls. This may block.

    Raises:
        ModelError: there are no credentials, or there is no region.
    """
    try:
        session = boto3.session.Session(region_name=region)
        credentials = session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        credentials.get_frozen_credentials()
        if not session.region_name:
            raise NoRegionError
    except ERRORS as error:
        raise explain(error, {}) from error
    return session.region_name
