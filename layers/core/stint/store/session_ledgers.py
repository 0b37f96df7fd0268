"""The budgets of sessions and conversations in their records, and the leases that write what was spent.

`budget` has the limits, and `spent` the totals. Both are short texts, so that the record of a session stays small. They
are written by creations, renewals and releases only, which are there anyway.
"""

from stint.dataclasses import replace
from stint.domain.session_budgets import SessionBudget, SessionLedger, SpentBudget, newer
from stint.store.items import Item
from stint.store.lease import Lease

SPENT = "spent"


def budget_item(budget: SessionBudget | None) -> Item:
    """Return the attributes of a new session or conversation with a budget."""
    return {} if budget is None else {"budget": budget.pack()}


def find_ledger(item: Item, resource: str) -> SessionLedger | None:
    """Return the ledger of a record, or None if its session or conversation is not limited."""
    return SessionLedger.read(resource, item["budget"], item.get(SPENT)) if "budget" in item else None


def show_budget(item: Item) -> SpentBudget | None:
    """Return the budget of a record as the API shows it."""
    ledger = find_ledger(item, "")
    return None if ledger is None else ledger.show()


def noting(lease: Lease, ledger: SessionLedger) -> Lease:
    """Return a lease whose renewals and release write what was spent."""
    return replace(lease, noted=lambda: {SPENT: ledger.pack()})


def count_logged(item: Item, spent: str | None) -> Item:
    """Return what is to be written to a record for what the log of its dead holder says."""
    if "budget" not in item or spent is None:
        return {}
    return {SPENT: newer(item.get(SPENT), spent)}
