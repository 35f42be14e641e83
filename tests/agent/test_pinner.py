"""A look at a node's pods: what is written, and that trouble with one pod is that pod's alone."""

from pathlib import Path

from agent import machine
from agent.__main__ import PODS
from agent.cgroups import Cgroups
from agent.pinner import Pinner
from slurmruntime.kube.cache import Cache
from slurmruntime.model.objects import KubeObject
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from tests.agent.groups import v1


class Node:
    """Folders that stand for a node of four processors, and its agent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pods: Cache[KubeObject] = Cache(PODS)
        self.metrics = Metrics("agent")
        self.order: tuple[int, ...] = (0, 1, 2, 3)
        self.agent = Pinner(
            self.pods,
            Cgroups(root),
            lambda: self.order,
            schedulers=names.schedulers(names.SCHEDULER_NAME),
            metrics=self.metrics.agent,
        )

    def pod(
        self,
        uid: str,
        cpus: str | None,
        *,
        has_group: bool = True,
        scheduler: str = names.SCHEDULER_NAME,
        phase: str = "Running",
    ) -> Path:
        notes = {} if cpus is None else {names.CPUS_ANNOTATION: cpus}
        self.pods.put(
            KubeObject(
                api_version="v1",
                kind="Pod",
                uid=uid,
                name=uid,
                namespace="n",
                annotations=notes,
                spec={"schedulerName": scheduler},
                status={"phase": phase},
            )
        )
        group = f"kubepods/pod{uid}"
        return v1(self.root, group, "c") if has_group else self.root / "cpuset" / group

    def told(self) -> dict[str, float]:
        text = self.metrics.registry.exposition().decode()
        rows = (line.split() for line in text.splitlines() if line.startswith("slurm_bridge_agent"))
        return {name.removeprefix("slurm_bridge_agent_"): float(value) for name, value in rows}


def cpus(group: Path) -> str:
    return (group / "cpuset.cpus").read_text().strip()


def test_a_pod_is_pinned_once_its_group_is_there(tmp_path: Path) -> None:
    node = Node(tmp_path)
    group = node.pod("a", "1", has_group=False, phase="Pending")
    node.agent.reconcile()
    assert not group.exists()
    assert not node.told()["failures_total"]

    v1(tmp_path, "kubepods/poda", "c")
    node.agent.reconcile()

    assert "1" == cpus(group) == cpus(group / "c")
    assert 1 == node.told()['pods{cores="pinned"}']


def test_a_pod_whose_job_was_restored_may_use_all_processors_again(tmp_path: Path) -> None:
    node = Node(tmp_path)
    group = node.pod("a", "1")
    node.agent.reconcile()
    assert "1" == cpus(group)

    node.pods.put(
        KubeObject(
            api_version="v1",
            kind="Pod",
            uid="a",
            name="a",
            namespace="n",
            annotations={},
            spec={"schedulerName": names.SCHEDULER_NAME},
            resource_version="2",
        )
    )
    node.agent.reconcile()

    assert "0-3" == cpus(group)


def test_one_pod_that_cannot_be_confined_keeps_no_other_waiting(tmp_path: Path) -> None:
    node = Node(tmp_path)
    odd, well = node.pod("a", "0"), node.pod("b", "1")
    (odd / "cpuset.cpus").write_text("nonsense")

    node.agent.reconcile()

    assert "1" == cpus(well)
    told = node.told()
    assert [1, 1, 1] == [
        told[name] for name in ("failures_total", 'pods{cores="failed"}', 'pods{cores="pinned"}')
    ]
    assert node.agent.check() is None


def test_what_others_write_on_their_own_pods_unpins_none_of_ours(tmp_path: Path) -> None:
    """Outside the namespaces that Slurm places, no policy looks at our label and annotation."""
    node = Node(tmp_path)
    ours = node.pod("a", "1")
    theirs = node.pod("b", "0-1", scheduler="default-scheduler")
    node.pod("c", "2", scheduler=names.binder(names.SCHEDULER_NAME))

    node.agent.reconcile()

    assert "1" == cpus(ours)
    assert "0-3" == cpus(theirs)
    assert 2 == node.told()['pods{cores="pinned"}']


def test_an_agent_that_starts_again_changes_nothing_and_goes_on(tmp_path: Path) -> None:
    """Nothing is remembered: what a killed agent left half done is put right."""
    node = Node(tmp_path)
    group = node.pod("a", "1")
    (group / "c" / "cpuset.cpus").write_text("1")  # the container was written, the pod was not

    node.agent.reconcile()

    assert "1" == cpus(group) == cpus(group / "c")


def test_the_machines_own_processors_are_read() -> None:
    order = machine.order(Path("/sys/devices/system"))

    assert sorted(set(order)) == sorted(order)
    assert order


def test_processors_that_cannot_be_read_end_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path)
    group = node.pod("a", "1")

    def fails() -> tuple[int, ...]:
        return machine.order(tmp_path / "nowhere")

    node.agent._order = fails
    node.agent.reconcile()

    assert "0-3" == cpus(group)
    assert 1 == node.told()["failures_total"]
    assert "processors cannot be read" in (node.agent.check() or "")


def test_an_agent_is_ready_only_once_it_has_looked(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert node.agent.check()

    node.agent.reconcile()

    assert node.agent.check() is None


def test_a_machine_that_cannot_pin_makes_the_agent_unready_until_it_can(tmp_path: Path) -> None:
    """Groups of version 2 without the controller look like those of pods that have just gone."""
    node = Node(tmp_path)
    (tmp_path / "cgroup.controllers").touch()
    node.pod("a", "1", has_group=False)
    group = tmp_path / "kubepods" / "poda"
    group.mkdir(parents=True)

    node.agent.reconcile()

    assert "controller cpuset" in (node.agent.check() or "")
    assert [1, 1] == [node.told()[name] for name in ("failures_total", 'pods{cores="failed"}')]

    (group.parent / "cpuset.cpus.effective").write_text("0-3\n")
    (group / "cpuset.cpus").write_text("\n")
    node.agent.reconcile()

    assert node.agent.check() is None
    assert "1" == cpus(group)


def test_an_agent_that_finds_no_group_of_any_pod_that_runs_is_unready(tmp_path: Path) -> None:
    """As where kubelets keep their groups elsewhere: nothing would be pinned, and nobody told."""
    node = Node(tmp_path)
    node.pod("a", "1", has_group=False)

    node.agent.reconcile()

    assert "kubepods" in (node.agent.check() or "")
    assert 1 == node.told()['pods{cores="missing"}']

    node.pod("b", "0")
    node.agent.reconcile()

    assert node.agent.check() is None  # that of one alone may have just been removed
    assert 1 == node.told()['pods{cores="missing"}']
