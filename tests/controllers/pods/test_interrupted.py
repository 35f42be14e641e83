"""Whichever write goes wrong while placeholders are restored or orphans are collected: it ends as it would have without that."""

import pytest

from bridge.domain.lifecycle.actions import Restore
from slurmruntime.process.metrics.pods import PodMetrics
from slurmruntime.values import names
from tests.controllers.pods_situations import COLLECTED, RESTORED, identity_of
from tests.make.situations import (
    Situation,
    check_that_every_write_may_fail,
    lived_through,
)
from tests.make.trouble import Fault, Trouble


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
@pytest.mark.parametrize("there", [*RESTORED, *COLLECTED], ids=lambda there: there.name)
def test_after_a_write_that_went_wrong_all_is_as_if_it_had_not(
    there: Situation, fault: Fault
) -> None:
    check_that_every_write_may_fail(there, fault)


@pytest.mark.parametrize("there", RESTORED, ids=lambda there: there.name)
def test_what_is_lost_is_restored_once_on_the_node_of_its_pods(
    there: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: set[str] = set()
    monkeypatch.setattr(PodMetrics, "decided", lambda _, action: done.add(action))
    leader = lived_through(there, Trouble())
    (restored,) = leader.slurm.jobs.values()
    assert ("RUNNING", "k1") == (restored.state, restored.nodes)
    assert "lost" == identity_of(restored).restores
    assert Restore.__name__ in done
    for found in leader.api.pods.values():
        assert restored.sluid == found["metadata"]["annotations"][names.SLUID_ANNOTATION]


@pytest.mark.parametrize("there", COLLECTED, ids=lambda there: there.name)
def test_only_what_has_no_pod_is_cancelled(there: Situation) -> None:
    leader = lived_through(there, Trouble())
    alive = {job.id for job in leader.slurm.jobs.values() if job.state != "CANCELLED"}
    assert alive == ({1} if "one" in leader.api.pods and "others" in there.name else set())
