"""Workers get only an `extraConf` that slurmctld would take: one that it refuses, or has not tried, changes nothing."""

import pytest

from slurmoperator.nodesets.conf_trials import ConfTrial
from tests.slurmoperator.nodesets.given import container
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, names_of, node_set
from tests.virtual_time import VirtualClock, run

WORDS = "error: Weight value (abc) is not a valid number"


def says(operator: Operator, extra_conf: str, words: str = "", *, is_known: bool = True) -> None:
    """What the control plane has seen."""
    found = ConfTrial(extra_conf=extra_conf, is_known=is_known, words=words)
    operator.tried.put("uid-gpu", found)


def configured(operator: Operator) -> tuple[str, str, str]:
    found = operator.api.condition("gpu", "Configured")
    return found["status"], found["reason"], found.get("message", "")


def wants(operator: Operator, extra_conf: str, **spec: object) -> None:
    operator.api.change("NodeSet", "gpu", spec={"extraConf": extra_conf, **spec})


def templates(operator: Operator) -> set[str]:
    pods = operator.api.pods.values()
    return {pod["metadata"]["labels"]["controller-revision-hash"] for pod in pods}


def uids(operator: Operator) -> set[str]:
    return {pod["metadata"]["uid"] for pod in operator.api.pods.values()}


async def in_force(clock: VirtualClock) -> Operator:
    """Two workers with an `extraConf` that slurmctld takes."""
    operator = Operator(clock)
    operator.api.put(node_set(replicas=2, extraConf="Weight=3", **container("slurmd:1")))
    says(operator, "Weight=3")
    await operator.lead(for_s=SETTLED_S)
    assert ("True", "InForce", "") == configured(operator)
    assert "Weight=3" == operator.api.status("gpu")["acceptedConf"]
    return operator


@pytest.mark.parametrize(
    ("is_known", "told"), [(True, ("False", "Refused")), (False, ("Unknown", "NotTried"))]
)
def test_what_is_refused_or_not_tried_replaces_nobody_and_new_workers_get_what_was_taken(
    is_known: bool, told: tuple[str, str]
) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = await in_force(clock)
        before, template = uids(operator), templates(operator)
        says(operator, "Weight=abc", WORDS, is_known=is_known)
        wants(operator, "Weight=abc", replicas=3)
        await operator.lead(for_s=4 * SETTLED_S)
        assert ["gpu-0", "gpu-1", "gpu-2"] == names_of(operator.api.pods)
        assert before < uids(operator)
        assert template == templates(operator)
        status, reason, text = configured(operator)
        assert told == (status, reason)
        assert text.endswith(f"{WORDS}; workers keep the last accepted value: Weight=3"), text
        assert is_known == text.startswith("spec.extraConf, Weight=abc: slurmctld says: ")
        assert "True" == operator.api.condition("gpu", "Ready")["status"]

        # Another leader has not looked yet.
        operator.tried.forget("uid-gpu")
        await operator.lead(for_s=SETTLED_S)
        assert (*told, text) == configured(operator)

        says(operator, "Weight=4")
        wants(operator, "Weight=4")
        await operator.lead(for_s=8 * SETTLED_S)
        assert ("True", "InForce", "") == configured(operator)
        assert not before & uids(operator)
        assert 1 == len(templates(operator) - template)

    run(main)


def test_a_node_set_whose_first_one_is_refused_gets_no_workers_until_it_is_mended() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1, extraConf="Weight=abc", **container("slurmd:1")))
        says(operator, "Weight=abc", WORDS)
        await operator.lead(for_s=SETTLED_S)
        assert [] == names_of(operator.api.pods)
        assert ("False", "Refused") == configured(operator)[:2]
        assert WORDS in operator.api.condition("gpu", "Accepted")["message"]
        assert operator.api.status("gpu").get("acceptedConf") is None

        wants(operator, "Weight=4")
        says(operator, "Weight=4")
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-0"] == names_of(operator.api.pods)
        assert "True" == operator.api.condition("gpu", "Accepted")["status"]

    run(main)


def test_workers_of_a_new_cluster_wait_for_no_trial() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1, extraConf="Weight=4", **container("slurmd:1")))
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-0"] == names_of(operator.api.pods)
        assert ("Unknown", "NotTried") == configured(operator)[:2]

    run(main)
