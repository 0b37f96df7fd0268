"""Composition of the credentials of tenants' data, for stacks with TenantIsolation iam."""

from stint.aws.credentials import CredentialsSource, RefreshedCredentials
from stint.aws.credentials_chain import choose_provider
from stint.aws.environment import read_environment
from stint.aws.signature import SignatureClock
from stint.aws.tenant_credentials import AssumedRole, TenantCredentials
from stint.caller import require_tenant
from stint.store.keys import index_owner


def make_data_credentials(role_arn: str) -> CredentialsSource:
    """Return credentials that reach only the data of the tenant for which the current code runs.

    The tenant is that of the authenticated caller or of the worker's task, not that of a key. A session has the name
    of its tenant, which CloudTrail shows.
    """
    environment = read_environment()
    own, clock = RefreshedCredentials(choose_provider(environment)), SignatureClock()

    def make_provider(tenant: str) -> AssumedRole:
        tags = {"tenant": tenant, "index": index_owner(tenant)}
        return AssumedRole(environment, own, role_arn, f"stint-{tenant}", tags=tags, clock=clock)

    return TenantCredentials(require_tenant, make_provider, clock)
