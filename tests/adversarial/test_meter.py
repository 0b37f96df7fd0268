"""The meter of hostile requests sees what it is there to see."""

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.adversarial.meter import children_peak_bytes

PROGRAM = """
import asyncio, json, subprocess, sys, threading, time
from dataclasses import asdict
from tests.adversarial.meter import Meter

def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass

async def main():
    {work}

meter = Meter()
meter.start()
asyncio.run(main())
print(json.dumps(asdict(meter.stop())))
"""


def measure(work: str) -> dict[str, Any]:
    environment = {"PYTHONPATH": ".", "PATH": ""}
    command = [sys.executable, "-c", PROGRAM.format(work=work)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    costs: dict[str, Any] = json.loads(done.stdout)
    return costs


def test_a_busy_callback_is_a_stretch_of_the_loop() -> None:
    assert measure("burn(0.3)")["stretch"] >= 0.3
    assert measure("[burn(0.05) or await asyncio.sleep(0) for _ in range(6)]")["stretch"] < 0.2


def test_waiting_costs_nothing() -> None:
    costs = measure("await asyncio.sleep(0.5)")

    assert costs["stretch"] < 0.2
    assert costs["cpu"] < 0.2


def test_threads_and_children_cost_cpu_time_and_do_not_hold_the_loop() -> None:
    child = "subprocess.run, [sys.executable, '-c', 'while __import__(\"time\").process_time() < 0.3: pass']"

    for work in ("await asyncio.to_thread(burn, 0.3)", f"await asyncio.to_thread({child})"):
        costs = measure(work)
        assert costs["cpu"] >= 0.3
        assert costs["stretch"] < 0.2


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_memory_counts_that_was_held_for_a_moment() -> None:
    assert measure("bytearray(60_000_000)")["grown"] >= 50_000_000
    assert measure("pass")["grown"] < 20_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_the_memory_of_a_child_is_read_while_it_lives() -> None:
    grandchild = "held = bytearray(60_000_000); print(1, flush=True); input()"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        process.stdout.readline()
        assert children_peak_bytes(process.pid) >= 60_000_000
        process.communicate("\n")
    assert children_peak_bytes(process.pid) == 0
