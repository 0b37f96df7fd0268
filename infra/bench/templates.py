"""`python -m infra.bench.templates`: what filling a template of a caller costs, here and in a limited process.

Our engine runs the allowed part of Jinja in the function's process, with a budget. The alternative is the whole of
Jinja's sandbox in a process with limits of CPU time and memory, which must be started for each query, because a
template can leave nothing behind that the next one sees.
"""

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence

from stint.jinja.template import fill_template

TEMPLATE = "{% for message in messages %}{% if loop.last %}Search for: {{ message.content }}{% endif %}{% endfor %}"
MESSAGES = [f"Message {number} of a session." for number in range(20)]
RUNS = 10
CPU_SECONDS, MEMORY_BYTES = 1, 200_000_000

CHILD = f"""
import json, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES}, {MEMORY_BYTES}))
from jinja2.sandbox import ImmutableSandboxedEnvironment
template, messages = json.load(sys.stdin)
print(ImmutableSandboxedEnvironment().from_string(template).render(messages=[{{"content": each}} for each in messages]))
"""


def fill_in_child(template: str, messages: Sequence[str]) -> str:
    """Fill a template in a limited process of its own."""
    sent = json.dumps([template, messages])
    return subprocess.run(
        [sys.executable, "-I", "-c", CHILD], input=sent, capture_output=True, text=True, check=True
    ).stdout.removesuffix("\n")


def cpu_seconds() -> float:
    """Return the CPU time of this process and its ended children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure_cpu(fill: Callable[[str, Sequence[str]], str], runs: int) -> float:
    """Return the CPU milliseconds of a run."""
    before = cpu_seconds()
    for _ in range(runs):
        fill(TEMPLATE, MESSAGES)
    return (cpu_seconds() - before) / runs * 1_000


def main() -> None:
    if fill_in_child(TEMPLATE, MESSAGES) != fill_template(TEMPLATE, MESSAGES):
        sys.exit("The two engines fill the template differently.")
    child, here = measure_cpu(fill_in_child, RUNS), measure_cpu(fill_template, 100 * RUNS)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1_000
    print(f"in this process      {here:8.3f} ms of CPU time a query")
    print(f"in a limited process {child:8.3f} ms of CPU time a query, {memory:.0f} MB ({child / here:,.0f} times)")


if __name__ == "__main__":
    main()
