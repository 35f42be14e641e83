"""A node that takes no work on one side takes none on the other; whose word that was is never forgotten."""

import pytest

from slurmruntime.values import names
from tests.integration.machines import PATIENCE_S, Machine
from tests.integration.worlds import Worlds, played
from tests.servers import wait_until

_HOURS_S = 3600


@pytest.fixture
def registered(machine: Machine) -> Machine:
    """A machine that Slurm has."""
    machine.label("true")
    machine.await_in_service()
    return machine


def test_a_cordon_drains_and_an_uncordon_lifts_it(registered: Machine) -> None:
    registered.cordon(on=True)
    assert registered.await_drained().startswith("slurm-bridge: cordoned in Kubernetes")
    status, message = registered.await_condition("Drained")
    assert ("False", True) == (status, message.startswith("slurm-bridge: cordoned in Kubernetes"))

    registered.cordon(on=False)
    registered.await_in_service()


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (
            {"state": ["DRAIN"], "reason": "bad memory"},
            ("Drained", "bad memory, by root, since 20"),
        ),
        ({"state": ["DRAIN"]}, ("Drained", "no reason given")),
        ({"state": ["DOWN"], "reason": "no fan"}, ("Down", "no fan, by root, since 20")),
        ({"state": ["FAIL"], "reason": "ECC"}, ("Failing", "ECC, by root, since 20")),
    ],
    ids=["drain", "drain without a reason", "down", "fail"],
)
def test_an_administrators_word_shows_and_stands(
    registered: Machine, change: dict[str, object], shown: tuple[str, str]
) -> None:
    """Through a cordon, an uncordon and a restart of ours; it goes when the administrator says so."""
    registered.update(**change)
    reason, message = shown
    status, said = registered.await_condition(reason)
    assert ("False", True) == (status, said.startswith(message))
    wait_until(
        lambda: said == registered.events().get(reason), PATIENCE_S, sandbox=registered.sandbox
    )

    registered.cordon(on=True)
    registered.sandbox.restart("controllers", signal="KILL")
    registered.cordon(on=False)
    # A change that only a look after all that can have made.
    registered.set_status({"addresses": [{"type": "InternalIP", "address": "127.0.0.9"}]})
    node = registered.await_in_slurm(lambda node: node["NodeAddr"] == "127.0.0.9")

    assert str(change["state"]).strip("[]'") in node["State"]
    assert str(change.get("reason", "")) == node.get("Reason", "").partition(" [")[0]
    assert ("False", reason) == registered.condition()[:2]
    assert not registered.is_cordoned()

    registered.update(state=["RESUME"])
    registered.await_in_service()


def test_a_drain_of_an_administrator_over_ours_is_the_administrators(registered: Machine) -> None:
    registered.cordon(on=True)
    registered.await_drained()
    registered.update(state=["DRAIN"], reason="ops")

    registered.cordon(on=False)
    registered.set_status({"addresses": [{"type": "InternalIP", "address": "127.0.0.9"}]})

    node = registered.await_in_slurm(lambda node: node["NodeAddr"] == "127.0.0.9")
    assert "DRAIN" in node["State"]
    assert node["Reason"].startswith("ops")


def test_what_an_administrator_resumes_is_drained_again_while_it_is_cordoned(
    registered: Machine,
) -> None:
    registered.cordon(on=True)
    registered.await_drained()
    registered.update(state=["DRAIN"], reason="ops")
    registered.await_condition("Drained")
    registered.update(state=["UNDRAIN"])

    registered.await_in_slurm(
        lambda node: node.get("Reason", "").startswith("slurm-bridge: cordoned")
    )


def test_a_dead_node_is_drained_then_down_and_comes_back(
    registered: Machine, worlds: Worlds
) -> None:
    """DOWN only once Kubernetes has given the pod up, which here it does after a second."""
    gives_up = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    uid = worlds.submit(
        "stranded",
        annotations=played(stop_seconds=_HOURS_S),
        terminationGracePeriodSeconds=_HOURS_S,
        nodeSelector=registered.selector,
        tolerations=[{**gives_up, "operator": "Exists", "tolerationSeconds": 1}],
    )
    worlds.await_phase("stranded", "Running")

    registered.die()
    down = registered.await_in_slurm(lambda node: "DOWN" in node["State"])
    assert down["Reason"].startswith(
        "slurm-bridge: not ready in Kubernetes, its pods were given up"
    )
    assert "deletionTimestamp" in worlds.await_pod("stranded", bool)["metadata"]
    assert "NODE_FAIL" == worlds.await_accounted(uid).state
    registered.await_condition("Down")

    registered.come_back()
    registered.await_in_service()
    worlds.sandbox.admin.delete(f"{worlds.path}/pods/stranded", gracePeriodSeconds=0)


def test_a_dead_node_whose_pods_stay_is_only_drained(registered: Machine, worlds: Worlds) -> None:
    uid = worlds.submit("patient", nodeSelector=registered.selector)
    worlds.await_phase("patient", "Running")

    registered.die()

    assert registered.await_drained().startswith("slurm-bridge: not ready in Kubernetes")
    registered.await_condition("Draining")
    assert ["RUNNING"] == [job.state for job in worlds.live(uid)]
    registered.come_back()
    registered.await_in_service()


def test_a_node_that_slurm_could_not_reach_is_made_anew(registered: Machine) -> None:
    registered.update(state=["NOT_RESPONDING"])
    registered.await_in_slurm(lambda node: "NOT_RESPONDING" in node["State"])

    registered.await_in_slurm(lambda node: "NOT_RESPONDING" not in node["State"])
    registered.await_in_service()


def test_a_reservation_shows(registered: Machine) -> None:
    name = f"res-{registered.name}"
    starts = ("starttime=now", "duration=60", "users=root", f"nodes={registered.name}")
    registered.slurm.run("scontrol", "create", "reservation", f"reservationname={name}", *starts)
    try:
        status, message = registered.await_condition("Reserved")
        assert ("False", f"only jobs of reservation {name} start there") == (status, message)
    finally:
        registered.slurm.run("scontrol", "delete", f"reservationname={name}")
    registered.await_in_service()


def test_maintenance_shows(registered: Machine) -> None:
    name = f"maint-{registered.name}"
    starts = ("starttime=now", "duration=60", "users=root", "flags=maint")
    where = f"nodes={registered.name}"
    registered.slurm.run(
        "scontrol", "create", "reservation", f"reservationname={name}", *starts, where
    )
    try:
        assert "False" == registered.await_condition("Maintenance")[0]
    finally:
        registered.slurm.run("scontrol", "delete", f"reservationname={name}")
    registered.await_in_service()


def test_a_node_that_leaves_is_left_as_it_was(registered: Machine) -> None:
    registered.label(None)

    registered.await_not_in_slurm()
    wait_until(
        lambda: not registered.taints() and registered.condition() == ("", "", ""),
        PATIENCE_S,
        sandbox=registered.sandbox,
    )
    assert names.CORDON_ANNOTATION not in registered.in_kube()["metadata"]["annotations"]
