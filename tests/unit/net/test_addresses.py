import pytest

from stint.net.addresses import kind_of, parse_address


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("::", "unspecified"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("fd00:ec2::254", "private"),
        ("fec0::1", "private"),
        ("169.254.169.254", "link-local"),
        ("169.254.170.2", "link-local"),
        ("fe80::1", "link-local"),
        ("100.64.0.1", "shared (carrier-grade NAT)"),
        ("100.127.255.255", "shared (carrier-grade NAT)"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("240.0.0.1", "reserved"),
        ("192.0.0.192", "reserved"),
        ("192.0.2.1", "documentation or benchmarking"),
        ("198.19.0.1", "documentation or benchmarking"),
        ("2001:db8::1", "documentation or benchmarking"),
        ("::127.0.0.1", "IPv4 in IPv6"),
        ("2002:7f00:1::", "IPv4 in IPv6"),
        ("2001:0:7f00:1::", "IPv4 in IPv6"),
        ("64:ff9b:1::7f00:1", "IPv4 in IPv6"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:a9fe:a9fe", "link-local"),
        ("64:ff9b::169.254.169.254", "link-local"),
        ("64:ff9b::10.0.0.1", "private"),
        ("4000::1", "reserved"),
        ("::ffff:0:127.0.0.1", "reserved"),
    ],
)
def test_a_special_address_is_named(address: str, kind: str) -> None:
    assert kind_of(parse_address(address)) == kind


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "169.253.0.1",
        "2606:4700::1111",
        "2a05:d018::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ],
)
def test_an_address_of_the_internet_is_nothing_special(address: str) -> None:
    assert kind_of(parse_address(address)) is None


@pytest.mark.parametrize("text", ["fe80::1%eth0", "2606:4700::1111%1", "example.com", "127.1", "0x7f000001", ""])
def test_what_is_no_plain_address_is_not_parsed(text: str) -> None:
    with pytest.raises(ValueError, match=r"zone|does not appear"):
        parse_address(text)
