import pytest

from stint.net.addresses import parse_address
from stint.net.guard import AllowList, Peer, split_port


def peer(host: str, port: int = 80, address: str = "10.0.0.7") -> Peer:
    return Peer(host, port, parse_address(address))


@pytest.mark.parametrize("entry", ["tools.internal", "Tools.Internal.", "tools.internal:80", "10.0.0.7", "10.0.0.0/8"])
def test_an_entry_admits_what_it_names(entry: str) -> None:
    assert AllowList(["", entry]).admits(peer("tools.internal"))


@pytest.mark.parametrize("entry", ["internal", "tools.internal:81", "10.0.0.8", "10.0.0.7:81", "10.1.0.0/16", "::/0"])
def test_an_entry_admits_nothing_else(entry: str) -> None:
    assert not AllowList([entry]).admits(peer("tools.internal"))


def test_an_empty_list_admits_nothing() -> None:
    assert not AllowList([]).admits(peer("tools.internal"))


@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        ("host", ("host", None)),
        ("host:8080", ("host", 8080)),
        ("::1", ("::1", None)),
        ("[::1]", ("::1", None)),
        ("[0:0::1]:8080", ("::1", 8080)),
        ("::ffff:127.0.0.1", ("127.0.0.1", None)),
    ],
)
def test_hosts_and_ports_are_told_apart(entry: str, parts: tuple[str, int | None]) -> None:
    assert split_port(entry) == parts


@pytest.mark.parametrize("entry", ["host:http", "10.0.0.1/8"])
def test_a_malformed_entry_is_an_error_at_the_start(entry: str) -> None:
    with pytest.raises(ValueError):
        AllowList([entry])
