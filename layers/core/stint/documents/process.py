"""The program that reads documents in a process whose CPU time and memory the operating system limits.

It reads jobs from standard input and writes texts to standard output, each as a line of JSON and a number of bytes.
It imports little, because the caller waits for its start.
"""

import json
import resource
import sys
from contextlib import suppress
from types import ModuleType

from stint.documents.conversion import Job, convert
from stint.documents.mime_types import Kind
from stint.documents.served import Unreadable
from stint.documents.text import too_long


def main() -> None:
    """Answer jobs until the input ends. Arguments: total seconds of CPU time, and bytes of memory for each document."""
    seconds, memory = int(sys.argv[1]), int(sys.argv[2])
    # A core file would have the document's content.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The first signal tells the parent why the process ended; the second one cannot be caught.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))  # SIGXCPU, then SIGKILL
    limit_memory(memory)
    while line := sys.stdin.buffer.readline():
        header = json.loads(line)
        job = Job(**header["job"])
        if job.kind == Kind.pdf.name and "pypdf" not in sys.modules:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            import pypdf  # noqa: F401, PLC0415 - before the limit, as it is no part of what a document costs

            limit_memory(memory)
        if job.kind == Kind.office.name:
            leave_out_imports()
        answer(job, header["length"], memory)


def leave_out_imports() -> None:
    """Replace packages that python-pptx imports to write pictures and charts, and numpy, which openpyxl recognizes.

    The layer of the worker has none of the former. numpy would use up the memory that a document may take.
    """
    for name in {"PIL", "xlsxwriter"} - sys.modules.keys():
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__dict__.update(Image=None, ImageFont=None, Workbook=None)
    sys.modules["numpy"] = None  # type: ignore[assignment] # so its import raises ImportError


def limit_memory(headroom: int) -> None:
    """Limit the address space to its current size plus a number of bytes. Only Linux reports the current size."""
    with suppress(OSError), open("/proc/self/statm") as file:
        # Relative to the current size, since the interpreter's own differs between machines.
        limit = int(file.read().split()[0]) * resource.getpagesize() + headroom
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def answer(job: Job, length: int, memory: int) -> None:
    """Read a document, and write its text or its error."""
    body = b""
    try:
        body = convert(job, sys.stdin.buffer.read(length)).encode()
        if len(body) > job.text_bytes:
            raise too_long(job.characters)
        header: dict[str, object] = {"length": len(body)}
    except Unreadable as error:
        header = {"error": str(error), "code": error.code}
    except MemoryError:
        advice = f"reading it takes more than {memory:,} bytes of memory: send a part, or its text"
        header = {"error": advice, "code": "document_too_large"}
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + body)
    sys.stdout.buffer.flush()
