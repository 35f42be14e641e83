"""What `kubectl slurm logs` says where no pod prints the output."""

import pytest

from slurmcli.batch.logs import why_not
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.status import ArrayTasks, JobOutputs
from tests.slurmjobs.companions.outputs import job

HOME = JobOutputs(stdout="/home/alice/o", stderr="/home/alice/e")
ONE = JobOutputs(stdout="/home/alice/o", directory="/home/alice")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (job("Pending", reason="Priority"), "physics/train waits (Priority): no output so far"),
        (job(asks=False), "its output lies in /scratch/alice/7.out on the cluster; name the claim"),
        (job(outputs=HOME), "/home/alice/o and /home/alice/e on the cluster; that is not below"),
        (job(asks=False, outputs=ONE), "its output lies in /home/alice/o on the cluster; name"),
        (job("Failed", reason="NeverRunnable"), "physics/train has never run, so it wrote nothing"),
        (job(array=ArrayTasks(total=2)), "each task of an array has a file of its own"),
        (job("Failed"), "no pod prints it: it was deleted, could not be created"),
    ],
)
def test_where_the_output_lies_is_told_and_what_helps(found: SlurmJobObject, said: str) -> None:
    assert said in why_not(found)
