"""URLs that lead to an address inside, in every notation, and the places that take a URL."""

import socket
from collections.abc import Mapping
from typing import Any

PUBLIC = "public.example"
"""A host that URLs may name although it is on loopback: the servers of the attackers have it."""

INSIDE = "inside.example"
"""A name that resolves to loopback."""

NAMES: Mapping[str, list[str]] = {
    INSIDE: ["127.0.0.1"],
    "private.example": ["10.0.0.7"],
    "metadata.example": ["169.254.169.254"],
    "mixed.example": ["93.184.215.14", "127.0.0.1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "local.example": ["fd00:ec2::254"],
    PUBLIC: ["127.0.0.1"],
}
"""Names of an attacker's zone, and their addresses."""

LOOPBACK = (
    *("127.0.0.1", "localhost", "LOCALHOST.", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1"),
    *("0177.0.0.1", "017700000001", "0.0.0.0", "0", "[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
    *("[0:0:0:0:0:ffff:7f00:1]", "[64:ff9b::7f00:1]", "[::127.0.0.1]", "[2002:7f00:1::]", "127.255.255.254"),
    "%31%32%37.0.0.1",
    "\uff11\uff12\uff17.0.0.1",
    "127\u30020\u30020\u30021",
    *(INSIDE, f"{INSIDE}.", "mixed.example", "mapped.example"),
)
"""Hosts that mean this machine."""

ELSEWHERE = (
    *("169.254.169.254", "0xa9fea9fe", "2852039166", "[::ffff:a9fe:a9fe]", "[fd00:ec2::254]", "169.254.170.2"),
    *("10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "224.0.0.1", "255.255.255.255"),
    *("private.example", "metadata.example", "local.example", "[fe80::1%25eth0]"),
)
"""Hosts that mean a metadata service, or a machine of the network."""


def tricks(port: int) -> list[str]:
    """Return URLs that lead inside. A server listens on the port of loopback."""
    return [
        *(f"http://{host}:{port}/secret" for host in LOOPBACK),
        *(f"http://{host}/latest/meta-data/" for host in ELSEWHERE),
        *(f"{scheme}://127.0.0.1:{port}/secret" for scheme in ("ftp", "gopher", "ws", "unix", "HTTP+UNIX")),
        *("file:///etc/passwd", "dict://127.0.0.1:11211/", f"//127.0.0.1:{port}/secret", "jar:http://127.0.0.1!/"),
        f"http://public.example@127.0.0.1:{port}/secret",
        f"http://127.0.0.1:{port}#@public.example/",
        f"http://public.example:80@127.0.0.1:{port}/secret",
        f"http://127.0.0.1:{port}\\@public.example/",
        f"http://127.0.0.1:{port}?@public.example/",
        "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next",
        "http://127.0.0.1:80\r\nHost: public.example/",
    ]


real_getaddrinfo = socket.getaddrinfo


def look_up(host: Any, port: Any, *args: Any, **options: Any) -> Any:
    """Resolve the names of the attacker's zone, and others as usual, in place of `socket.getaddrinfo`."""
    name = (host.decode() if isinstance(host, bytes) else str(host)).rstrip(".")
    if name not in NAMES:
        return real_getaddrinfo(host, port, *args, **options)
    families = {True: socket.AF_INET6, False: socket.AF_INET}
    return [(families[":" in each], socket.SOCK_STREAM, 6, "", (each, port)) for each in NAMES[name]]
