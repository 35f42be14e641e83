"""A gang whose submit Slurm refused, and whose pods are edited then: what they ask for now is tried at once."""

from slurmruntime.values import names
from tests.integration.worlds import Worlds, condition, container, played
from tests.servers import wait_until

SIZE = 2
ASK = f"{names.REQUEST_PREFIX}partition"
REFUSALS = 6
"""By then the next try is 32 s away (1, 2, 4, 8, 16 s before)."""
WITHIN_S = 20.0


def test_a_refused_gang_that_is_edited_is_submitted_at_once(worlds: Worlds) -> None:
    for rank in range(SIZE):
        submit(worlds, f"rank-{rank}")
    wait_until(lambda: refusals(worlds) >= REFUSALS, 120, sandbox=worlds.sandbox)
    told = worlds.await_pod("rank-0", lambda pod: condition(pod).get("reason") == "SubmitRefused")
    assert "is in partition nowhere" in condition(told)["message"]

    for rank in range(SIZE):
        change = {"metadata": {"annotations": {ASK: None}}}
        worlds.sandbox.admin.patch(f"{worlds.path}/pods/rank-{rank}", change)

    for rank in range(SIZE):
        worlds.await_phase(f"rank-{rank}", "Running", deadline_s=WITHIN_S)


def submit(worlds: Worlds, name: str) -> None:
    notes = {names.POD_GROUP_SIZE_ANNOTATION: str(SIZE), ASK: "nowhere", **played(seconds=30)}
    body = {
        "metadata": {
            "name": name,
            "labels": {names.POD_GROUP_LABEL: "refused"},
            "annotations": notes,
        },
        "spec": {"containers": [container()], "restartPolicy": "Never"},
    }
    worlds.sandbox.admin.create(f"{worlds.path}/pods", body)


def refusals(worlds: Worlds) -> int:
    """How often the extender says that Slurm refused the gang."""
    lines = worlds.sandbox.instance.log("extender").read_text().splitlines()
    return sum(worlds.namespace in line and "placeholder.refused" in line for line in lines)
