"""Tenants in keys: one that is not valid is not part of any key."""

import pytest

from stint.store import keys


@pytest.mark.parametrize("tenant", ["", "a#b", "a/b", "A", "-a", "a b", "ä", "a\n", "x" * 33])
def test_no_key_has_a_tenant_that_is_not_valid(tenant: str) -> None:
    for make in (keys.agents, keys.files, keys.vector_db_names, keys.index_owner):
        with pytest.raises(ValueError, match="not a valid tenant"):
            make(tenant)
