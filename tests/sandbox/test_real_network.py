"""Real nodes get addresses that nothing else on the machine uses."""

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from sandbox.errors import SandboxError
from sandbox.realnodes import network
from sandbox.realnodes.network import CANDIDATES, Network

TABLE = """\
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
docker0	0000800A	00000000	0001	0	0	0	0000FFFF	0	0	0
gone	0000810A	00000000	0000	0	0	0	0000FFFF	0	0	0
"""


def test_routes_are_read_but_for_the_default_one_and_those_that_are_down() -> None:
    assert network.routed(TABLE) == (IPv4Network("192.0.2.0/24"), IPv4Network("10.128.0.0/16"))


def test_the_first_range_that_nothing_overlaps_is_chosen() -> None:
    taken = (*network.routed(TABLE), *network.name_servers("nameserver 10.129.0.2\nsearch x\n"))

    assert network.choose(taken) == IPv4Network("10.130.0.0/16")


def test_a_wider_route_takes_every_range_in_it() -> None:
    assert network.choose([IPv4Network("10.128.0.0/10")]) == IPv4Network("10.192.0.0/16")
    with pytest.raises(SandboxError, match=r"uses every range .* --real-network"):
        network.choose([IPv4Network("10.0.0.0/8")])


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ("10.128.0.0/16", r"overlaps 10\.128\.0\.0/16, which this machine already uses: name"),
        ("10.77.0.0/24", "expected a /16"),
        ("10.77.1.0/16", "has host bits set; expected 10"),
        ("ten", "expected 10.77.0.0/16"),
    ],
)
def test_a_wanted_range_that_will_not_do_is_refused_in_words(wanted: str, complaint: str) -> None:
    with pytest.raises(SandboxError, match=f"--real-network .*{complaint}"):
        network.choose(network.routed(TABLE), wanted)


def test_a_wanted_range_that_is_free_is_taken() -> None:
    assert network.choose((), "10.77.0.0/16") == IPv4Network("10.77.0.0/16")


def test_no_address_is_given_twice_and_all_are_in_the_range() -> None:
    net = Network(id="0123abcd", range=CANDIDATES[0])
    hosts = IPv4Network((int(net.range[0]), 24))
    pods = [net.pods_of(index) for index in range(network.MOST_NODES)]

    assert len({net.address(index) for index in range(network.MOST_NODES)} | {net.gateway}) == 65
    assert all(IPv4Network(net.address(i)).subnet_of(hosts) for i in range(network.MOST_NODES))
    assert len(set(pods)) == network.MOST_NODES
    assert hosts not in pods
    assert all(pod.subnet_of(net.range) for pod in pods)


def test_names_on_the_host_fit_into_what_the_kernel_takes() -> None:
    net = Network(id=network.identify(Path("/a/very/long/path" * 20)), range=CANDIDATES[0])

    assert max(len(net.bridge), len(net.cable(network.MOST_NODES))) <= 15
    assert network.identify(Path("/a")) != network.identify(Path("/b"))
