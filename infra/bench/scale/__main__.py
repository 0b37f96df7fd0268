"""`python -m infra.bench.scale`: 10,000 sessions at once against DynamoDB's limits, in virtual time.

`docs/scale.md` describes what is run and what is not.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import get_args

from infra.bench.scale.capacity import OF_A_NEW_TABLE, OF_A_TABLE
from infra.bench.scale.load import Load
from infra.bench.scale.measure import measure

from stint.store.keys import KeyLayout

SPREADS = {"one agent": (1, 1), "zipf": (50, 20)}
"""Tenants, and agents of each."""
TABLES = {"raised": OF_A_TABLE, "new": OF_A_NEW_TABLE}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.bench.scale", description=__doc__)
    parser.add_argument("--sessions", type=int, default=Load.sessions)
    parser.add_argument("--within", type=float, default=Load.within, help="seconds in which all turns arrive")
    parser.add_argument("--seconds", type=int, default=30, help="seconds of a turn")
    parser.add_argument("--spread", choices=SPREADS, help="only this one of the two")
    parser.add_argument("--table", choices=TABLES, default="raised", help="the table's limits: raised, or of a new one")
    parser.add_argument("--layout", choices=get_args(KeyLayout), default=Load.layout, help="setting `key_layout`")
    given = parser.parse_args()
    silent = min(Load.silent, given.seconds - 1)
    load = Load(
        sessions=given.sessions,
        within=given.within,
        silent=silent,
        words=int(given.seconds - silent),
        table=TABLES[given.table],
        layout=given.layout,
    )
    loads = {
        name: replace(load, tenants=tenants, agents=agents)
        for name, (tenants, agents) in SPREADS.items()
        if given.spread in (None, name)
    }
    began = time.monotonic()
    with ProcessPoolExecutor(len(loads), mp_context=get_context("spawn")) as pool:
        for report in pool.map(measure, loads, loads.values()):
            print(report, flush=True)
    print(f"\n{time.monotonic() - began:.0f} s in total. Times of turns are virtual: docs/scale.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
