"""From the images and the chart of `90f44191` to ours by `helm upgrade`, and back by `helm rollback`, under load.

Pods wait, run and end, a gang is half bound, and SlurmJobs wait and run.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bridge import __version__
from sandbox import nss, slurm_conf
from sandbox.chart import BATCH_USER
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests import pages
from tests.pages import Reader
from tests.realnodes.containers import Containers
from tests.realnodes.installed import load, predecessor, release, surroundings
from tests.realnodes.installed.load import Load
from tests.realnodes.installed.predecessor import Predecessor
from tests.realnodes.installed.release import RELEASE, Installed
from tests.servers import fresh_namespace

pytestmark = [pytest.mark.real_all, pytest.mark.timeout(3600)]

CHART = surroundings.ROOT / "deploy" / "chart"
PAGE = "migration.md"
NEVER_S = 1800.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """A release under load, and what exchanges it."""

    installed: Installed
    before: Predecessor
    reader: Reader
    values: Path
    containers: Containers
    known: set[str]
    """The jobs of other tests, then those of all steps."""

    def upgrade(self, chart: Path, *arguments: str) -> None:
        """Start an upgrade; nobody waits for the pods."""
        self.installed.helms(
            "upgrade", RELEASE, str(chart), "--values", str(self.values), *arguments
        )

    def roll_back(self, meanwhile: Callable[[], None]) -> None:
        """Type what the page says about the way back; something happens while pods are replaced."""
        (steps,) = (block for block in pages.blocks(PAGE) if "helm rollback" in block.text)
        rollback, *rest = steps.commands()
        self.reader.types(rollback)
        meanwhile()
        for command in rest:
            self.reader.types(command)


@pytest.fixture(scope="module")
def exchange(bare: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    folder = tmp_path_factory.mktemp("predecessor")
    before = predecessor.built(folder)
    before.load(bare)
    values = folder / "my-values.yaml"
    helm = surroundings.helm()
    installed = Installed(bare, helm)
    reader = pages.reader(folder / "reader", bare.env, helm.parent)
    with release.ground(bare) as address:
        known = load.clear(bare)
        values.write_text(json.dumps(with_slurm_jobs(bare, release.values(bare, address))))
        installed.install(before.chart, values)
        with fresh_namespace(bare, labels={names.ENABLED_LABEL: "true"}) as namespace:
            containers = Containers(bare, namespace)
            with load.claimed(containers, load.SCRATCH, "/shared"):
                yield Exchange(installed, before, reader, values, containers, known)
        installed.remove()
        load.clear(bare)


def with_slurm_jobs(sandbox: Sandbox, values: dict[str, Any]) -> dict[str, Any]:
    """Let people have SlurmJobs, pods their parts of a processor, and a gang its time."""
    user = values["config"]["slurm"]["user"]
    account = {"default": nss.JOB_USER.name}
    people = {
        "name": "people",
        "match": {"kinds": ["SlurmJob"]},
        "user": BATCH_USER.name,
        "account": account,
        "partition": {"default": slurm_conf.COMPUTE},
        "working_directory": str(sandbox.instance.shared / "{slurm_user}"),
    }
    pods = {"name": "pods", "user": user, "group": user, "account": account}
    config = {
        **values["config"],
        "slurm": {**values["config"]["slurm"], "milli_cpu_per_cpu": load.MILLI_CPU_PER_CPU},
        "slurm_jobs": {"enabled": True},
        "policy": {"rules": [people, pods]},
        "placement": {"bind_deadline_s": NEVER_S},
    }
    return {**values, "config": config}


def test_nothing_is_lost_by_an_upgrade_nor_on_the_way_back(exchange: Exchange) -> None:
    for step in ("there", "back", "again"):
        current = Load(exchange.containers, step, known=exchange.known)
        lent = load.claimed(exchange.containers, current.of("lent"), load.FLAGS, "ReadWriteOncePod")
        with lent:
            current.put()
            before = current.state()

            if step == "back":
                exchange.roll_back(current.go_on)
            else:
                exchange.upgrade(CHART)
                current.go_on()
            exchange.installed.await_version(predecessor.TAG if step == "back" else __version__)

            assert before == current.state()
            current.end()
