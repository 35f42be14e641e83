"""Who may connect to whom: every pair of parts, judged as a network plugin judges NetworkPolicies."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurmoperator.configuration.slurm_conf import SLURMCTLD_PORT, SLURMD_PORT, SLURMDBD_PORT
from slurmoperator.rendering.access.tls import HEALTH_PORT
from slurmoperator.rendering.node_sets.worker import worker_pod
from slurmoperator.rendering.site import NetworkSite
from slurmoperator.rendering.ssh import SSH_PORT
from slurmruntime.crd.restapis import SLURMRESTD_PORT
from tests.slurmoperator.rendering.given import MADE_FOR, SITE, given, pod, rendered

PAGE = Path(__file__).parents[3] / "docs/operator.md"
MYSQL = 3306
ANY = 40_000
"""Stands for what srun, steps and programs of jobs listen on."""
PORTS = (
    SSH_PORT,
    MYSQL,
    SLURMCTLD_PORT,
    SLURMD_PORT,
    SLURMDBD_PORT,
    SLURMRESTD_PORT,
    6821,
    HEALTH_PORT,
    ANY,
)
HYBRID = "192.0.2.7"
ON = replace(
    SITE,
    network=NetworkSite(
        operator_namespace="slurm-bridge-system", others=({"ipBlock": {"cidr": "192.0.2.0/24"}},)
    ),
)


def template(kind: str) -> Any:
    """Of the pods that run for an object."""
    if kind != "NodeSet":
        return pod(rendered(given(kind)))
    return worker_pod(given(kind), 0, given("Controller"), SITE)


@dataclass(frozen=True, slots=True)
class Party:
    """Who connects, or is connected to."""

    namespace: str
    labels: Mapping[str, str]
    address: str = "10.0.0.1"


def members() -> dict[str, Party]:
    """Pods of a cluster with the labels that they really have, and others."""
    found = {}
    for kind in MADE_FOR:
        labels = template(kind)["metadata"]["labels"]
        found[labels["app.kubernetes.io/name"]] = Party("slurm", labels)
    exporter = {"app.kubernetes.io/name": "slurm-exporter"}
    return found | {
        "exporter": Party("slurm", exporter),
        "mariadb": Party("slurm", {"app.kubernetes.io/name": "mariadb"}),
        "neighbour": Party("slurm", {"app": "any"}),
        "operator": Party("slurm-bridge-system", {"app": "operator"}),
        "stranger": Party("elsewhere", {"app.kubernetes.io/name": "slurmctld"}),
        "hybrid": Party("", {}, HYBRID),
    }


MEMBERS = members()
TAKING = ("slurmctld", "slurmdbd", "slurmrestd", "slurmd", "login", "mariadb")
MAY = {
    *itertools.product(
        ("slurmctld", "slurmd", "login", "slurmrestd", "slurmdbd", "operator", "hybrid"),
        ("slurmctld",),
        (SLURMCTLD_PORT,),
    ),
    *itertools.product(
        ("slurmctld", "slurmrestd", "login", "slurmd", "hybrid"), ("slurmdbd",), (SLURMDBD_PORT,)
    ),
    *itertools.product(
        ("login", "exporter", "operator", "hybrid"), ("slurmrestd",), (SLURMRESTD_PORT,)
    ),
    ("slurmctld", "slurmd", SLURMD_PORT),
    *itertools.product(("slurmd", "login", "hybrid"), ("slurmd",), PORTS),
    *itertools.product(MEMBERS, ("login",), (SSH_PORT,)),
    *itertools.product(("slurmctld", "slurmd", "hybrid"), ("login",), PORTS),
    ("slurmdbd", "mariadb", MYSQL),
}
"""Who connects to whom, and on which port; nobody else may."""


def policies() -> list[Mapping[str, Any]]:
    made = [body for kind in MADE_FOR for body in rendered(given(kind), site=ON)]
    return [each for each in made if each["kind"] == "NetworkPolicy"] + [of_the_page()]


def of_the_page() -> Mapping[str, Any]:
    """The policy that the page suggests for a database."""
    (text,) = [
        each.partition("```")[0]
        for each in PAGE.read_text().split("```yaml\n")[1:]
        if "kind: NetworkPolicy" in each
    ]
    found = yaml.safe_load(text)
    found["metadata"].setdefault("namespace", "slurm")
    return dict(found)


def is_allowed(
    policies: Iterable[Mapping[str, Any]], source: Party, target: Party, port: int
) -> bool:
    """Judge as the API's own words do: without a policy all may connect, with any only whom a rule names."""
    judging = [policy for policy in policies if _selects(policy, target)]
    return not judging or any(
        _admits(rule, each["metadata"]["namespace"], source, port)
        for each in judging
        for rule in each["spec"].get("ingress", ())
    )


def _selects(policy: Mapping[str, Any], target: Party) -> bool:
    labels = policy["spec"]["podSelector"].get("matchLabels", {})
    is_here: bool = policy["metadata"]["namespace"] == target.namespace
    return is_here and labels.items() <= target.labels.items()


def _admits(rule: Mapping[str, Any], namespace: str, source: Party, port: int) -> bool:
    ports = [each["port"] for each in rule.get("ports", ())]
    peers = rule.get("from", ())
    return (not ports or port in ports) and (
        not peers or any(_is(peer, namespace, source) for peer in peers)
    )


def _is(peer: Mapping[str, Any], namespace: str, source: Party) -> bool:
    if "ipBlock" in peer:
        return source.address.startswith(str(peer["ipBlock"]["cidr"]).removesuffix("0/24"))
    if "namespaceSelector" in peer:
        wanted = peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
    else:
        wanted = namespace
    labels = peer.get("podSelector", {}).get("matchLabels", {})
    is_there: bool = source.namespace == wanted
    return is_there and labels.items() <= source.labels.items()


def connections() -> Iterator[tuple[str, str, int]]:
    yield from itertools.product(MEMBERS, TAKING, PORTS)


def test_whoever_must_may_connect_and_nobody_else() -> None:
    made = policies()
    found = {
        (source, target, port)
        for source, target, port in connections()
        if is_allowed(made, MEMBERS[source], MEMBERS[target], port)
    }
    assert set() == MAY - found, "these must"
    assert set() == found - MAY, "these must not"


@pytest.mark.parametrize("kind", MADE_FOR)
def test_ports_that_pods_name_are_among_those_that_are_judged(kind: str) -> None:
    containers = template(kind)["spec"]["containers"]
    assert {port["containerPort"] for one in containers for port in one["ports"]} <= {*PORTS}


def test_without_the_setting_there_are_none_and_all_may_connect() -> None:
    made = [body for kind in MADE_FOR for body in rendered(given(kind))]
    assert not [each for each in made if each["kind"] == "NetworkPolicy"]
    assert is_allowed(made[:0], MEMBERS["stranger"], MEMBERS["slurmctld"], SLURMCTLD_PORT)


def test_with_nobody_named_no_rule_stands_for_anybody() -> None:
    site = replace(SITE, network=NetworkSite(operator_namespace="slurm-bridge-system"))
    made = [body for kind in MADE_FOR for body in rendered(given(kind), site=site)]
    stranger = MEMBERS["stranger"]
    policies = [each for each in made if each["kind"] == "NetworkPolicy"]
    assert 5 == len(policies)
    assert not [
        (target, port)
        for target, port in itertools.product(TAKING[:-1], PORTS)
        if (target, port) != ("login", SSH_PORT)
        and is_allowed(policies, stranger, MEMBERS[target], port)
    ]
