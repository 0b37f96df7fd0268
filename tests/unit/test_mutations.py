"""Mutations of `make test-mutations` and `make test-fault-mutations`: their texts are in the files that they name."""

import pytest
from tests.faults.mutations import MUTATIONS as FAULTS
from tests.mutations import ROOT, Mutation
from tests.security.mutations import MUTATIONS as SECURITY

EVERY = [*SECURITY, *FAULTS]


@pytest.mark.parametrize("mutation", EVERY, ids=[each.protection for each in EVERY])
def test_a_mutation_changes_a_file_and_names_a_test_file(mutation: Mutation) -> None:
    assert mutation.code in (ROOT / mutation.file).read_text()
    assert mutation.code != mutation.mutated
    assert (ROOT / mutation.tests.split()[0].partition("::")[0]).is_file()
