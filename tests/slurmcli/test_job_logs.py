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
        (job("Pending", reason="Priority"), "physics/train is pending (Priority): no output yet"),
        (job(asks=False), "its output is in /scratch/alice/7.out on the cluster; to read it"),
        (job(outputs=HOME), "/home/alice/o and /home/alice/e on the cluster; that is not below"),
        (job(asks=False, outputs=ONE), "its output is in /home/alice/o on the cluster; to read it"),
        (job("Failed", reason="NeverRunnable"), "physics/train never ran and has no output"),
        (job(array=ArrayTasks(total=2)), "each task of an array writes its own file"),
        (job("Failed"), "no pod prints it: the pod was deleted, could not be created"),
    ],
)
def test_where_the_output_lies_is_told_and_what_helps(found: SlurmJobObject, said: str) -> None:
    assert said in why_not(found)
