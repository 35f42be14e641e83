"""`docs/operator-quickstart.md`, walked: every command, in order, on real kubelets."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox.image.slurm import SlurmImage
from sandbox.operator import demo
from sandbox.operator.serving import CLUSTER
from tests import pages
from tests.pages import Reader
from tests.servers import running_sandbox, wait_until

pytestmark = pytest.mark.real_all

PAGE = "operator-quickstart.md"
NOT_RUN = {
    "make demo-operator": "starts a sandbox of its own, and shows the same",
    "make venv": "what runs this is its result",
    ".venv/bin/slurm-bridge sandbox up --state /tmp/sb --operator --detach": "the fixture's is up",
    ". /tmp/sb/env": "the fixture has it in its environment",
    ".venv/bin/slurm-bridge sandbox down --state /tmp/sb": "the fixture's goes on",
}
SHOWN = {
    "srun -N2 hostname": ["cpu-0", "cpu-1"],
    "srun -N4 hostname": ["cpu-0", "cpu-1", "cpu-2", "cpu-3"],
}
GETS = "kubectl -n slurm get slurmclusters,controllers,nodesets,restapis,loginsets"
GOES_S = 120.0
DELETES = "kubectl -n slurm delete slurmcluster slurm --timeout=120s"
WAITS_S = 5.0
"""At least, of the 20 s that the job runs which the page starts before."""


@pytest.fixture(scope="module")
def reader(
    slurm_images: tuple[SlurmImage, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reader]:
    with running_sandbox(demo.SHAPE) as sandbox:
        here = {"/tmp/sb": str(sandbox.instance.root)}  # noqa: S108  # the page's
        found = pages.reader(tmp_path_factory.mktemp("reader"), sandbox.env)
        yield replace(found, in_place_of=here)


def test_every_command_does_what_the_page_says(reader: Reader) -> None:
    said: dict[str, str] = {}
    took_s: dict[str, float] = {}
    for block in pages.blocks(PAGE):
        for command in block.commands() if block.language == "sh" else ():
            typed = command.split("  #")[0].strip()
            if typed not in NOT_RUN:
                began_s = time.monotonic()
                said[typed] = reader.types(typed)
                took_s[typed] = time.monotonic() - began_s

    for part, nodes in SHOWN.items():
        (answer,) = (text for typed, text in said.items() if part in typed)
        assert nodes == sorted(answer.split())
    assert "slurmcluster.slurm-bridge.dev/slurm" in said[GETS]
    (queue,) = (text for typed, text in said.items() if "squeue --states=all" in typed)
    (waited_for,) = (line for line in queue.splitlines() if " wrap " in line)
    assert waited_for.split()[4] == "CD", "kubectl drain came back before the job had ended"
    assert took_s[DELETES] >= WAITS_S, "kubectl delete came back before the job had ended"
    left = "kubectl -n slurm get statefulsets,deployments,pods -o name"
    wait_until(lambda: not reader.types(left), GOES_S)
    assert "secret/slurm-auth-slurm" in reader.types("kubectl -n slurm get secrets -o name")


def test_the_page_shows_the_file_that_it_installs() -> None:
    (shown,) = (block.text for block in pages.blocks(PAGE) if block.language == "yaml")

    assert CLUSTER.read_text() == shown
    assert len(shown.splitlines()) == 6
