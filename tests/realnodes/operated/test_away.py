"""slurm-operator is away, and everything of a Slurm of pods is killed meanwhile: jobs go on, and only what was killed is missed.

An hour would change nothing besides: daemons need neither the operator's lease, which ends after seconds, nor its token for Slurm.
"""

from collections.abc import Iterator

import pytest

from sandbox.image.slurm import SlurmImage
from tests.realnodes.in_pods import STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

BACK_S = 120.0
LONG_S, SHORT_S = 600, 1
DAEMONS = ("slurmctld", "slurmdbd", "slurmrestd")


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    with slurm_in_pods(slurm_images) as found:
        yield found


def test_while_it_is_away_whatever_is_killed_comes_back_and_jobs_go_on(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    login = in_pods.log_in("login", in_pods.login_image)
    wait_until(lambda: in_pods.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n", STARTS_S)
    spared, killed = in_pods.workers()
    job = in_pods.submit(spared, LONG_S)
    lost = in_pods.submit(killed, LONG_S)
    wait_until(lambda: in_pods.run("squeue", "-h", "-o", "%t").split() == ["R", "R"], STARTS_S)
    started = in_pods.run("squeue", "-h", "-j", job, "-o", "%S")
    in_pods.let_save()
    sandbox.stop("operator", signal="KILL")

    for daemon in DAEMONS:
        pod = in_pods.kill(daemon)
        wait_until(lambda pod=pod: in_pods.is_ready(pod), BACK_S, sandbox=sandbox)  # type: ignore[misc]  # bound now
        wait_until(lambda: in_pods.state(job) == "RUNNING", BACK_S, sandbox=sandbox)
        assert "RUNNING" == in_pods.state(lost), daemon
        after = wait_until(lambda: in_pods.submit(spared, SHORT_S), BACK_S, sandbox=sandbox)
        wait_until(
            lambda after=after: in_pods.state(after) in ("PENDING", "RUNNING", "COMPLETED"),  # type: ignore[misc]  # bound now
            BACK_S,
            sandbox=sandbox,
        )

    in_pods.kill_worker(killed)
    wait_until(lambda: in_pods.is_ready(killed), BACK_S, sandbox=sandbox)
    wait_until(lambda: in_pods.state(lost) != "RUNNING", BACK_S, sandbox=sandbox)
    assert "RUNNING" == in_pods.state(job)
    in_pods.kill("login")
    wait_until(
        lambda: "workers-" in in_pods.tries(login, "srun", "--overlap", "-w", killed, "hostname"),
        BACK_S,
        sandbox=sandbox,
    )
    assert ("RUNNING", started) == (
        in_pods.state(job),
        in_pods.run("squeue", "-h", "-j", job, "-o", "%S"),
    )
    wait_until(lambda: (job, "RUNNING") in in_pods.accounted(), BACK_S, sandbox=sandbox)

    sandbox.start("operator")
    wait_until(
        lambda: in_pods.condition("nodesets", "workers", "Ready")[0] == "True",
        STARTS_S,
        sandbox=sandbox,
    )
    assert "RUNNING" == in_pods.state(job)
    assert [spared, killed] == in_pods.workers()
    in_pods.run("scancel", job)
