"""`python -m tests.soak.devices`: pods and native jobs that want devices of the same nodes, while much goes wrong.

Each node has a kubelet, a slurmd and four devices. Pods claim devices, jobs request them, some of both are cancelled,
urgent jobs preempt others; kubelets, drivers, slurmds and our own services are killed. Whoever runs holds a lock on each
of its devices, so two hands on one device are seen from inside. In the end everybody must have ended as sacct says, and
no claim may have a device. What was found is kept in .soak/: called again, it goes on where it was.
Writes its section of docs/reliability.md, and ends with 1 if a contract was broken.
"""

import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

import typer

from sandbox.api import ApiError
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.options import Options
from slurmruntime.values import names
from tests.realnodes import claimants
from tests.realnodes.containers import running
from tests.servers import SERVICES, fresh_namespace, running_sandbox, wait_until
from tests.soak import report
from tests.soak.devices import hands, lives
from tests.soak.devices.lives import DeviceLife, Fate, Kind

_URGENT = "urgent"
_AT_A_TIME = 20
"""More than there is room for: some always wait."""
_LOOKS_EVERY_S = 1.0
_FAULT_EVERY_S = (2.0, 8.0)
"""Of six kinds, so each is struck about twice a minute."""
_LONGEST_S = 900.0
"""For the last ones to end, once all have been created."""
_SETTLES_WITHIN_S = 120.0
_DAEMONS = ("kubelet", "dra-test-driver", "slurmd")
"""Of a node; killed as often as services are."""
_SUMS = ("lives", "ends", "faults")
_AWAY = (SandboxError, ApiError, subprocess.TimeoutExpired)
_OPTIONS = Options(
    hybrid=True,
    escrow=True,
    accounting=True,
    nodes=0,
    plain_nodes=0,
    real_dra=lives.MOST_DEVICES,
    settings=(claimants.PROFILE,),
)


class DeviceField:
    """Creates the lives, does to them what is their fate, and learns how they end."""

    def __init__(
        self, sandbox: Sandbox, namespace: str, todo: Sequence[DeviceLife], dice: random.Random
    ) -> None:
        self._sandbox = sandbox
        self._namespace = namespace
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._todo = todo
        self._dice = dice
        self._fault_at = time.monotonic() + dice.uniform(*_FAULT_EVERY_S)
        self.faults: Counter[str] = Counter()

    def live(self) -> None:
        """Let all of them live, a few at a time."""
        waiting, around = list(reversed(self._todo)), list[DeviceLife]()
        deadline_s = time.monotonic() + _LONGEST_S
        while (waiting or around) and time.monotonic() < deadline_s:
            while waiting and len(around) < _AT_A_TIME:
                around.append(waiting.pop())
                deadline_s = time.monotonic() + _LONGEST_S
            with suppress(*_AWAY):
                pods, jobs = self._listed(), self._queue()
                # Who is created now is not in these lists yet.
                around = [life for life in around if not self._is_over(life, pods, jobs)]
                for life in around:
                    self._tend(life, pods.get(life.name), jobs)
            if time.monotonic() >= self._fault_at and waiting:
                self._strike()
            time.sleep(_LOOKS_EVERY_S)

    def _listed(self) -> Mapping[str, Mapping[str, Any]]:
        items = self._sandbox.admin.get(self._pods)["items"]
        return {item["metadata"]["name"]: item for item in items}

    def _queue(self) -> Mapping[str, str]:
        """The states of all live jobs."""
        lines = self._sandbox.run("squeue", "-h", "-o", "%i %T").splitlines()
        return dict(line.split(maxsplit=1) for line in lines)

    def _tend(
        self, life: DeviceLife, pod: Mapping[str, Any] | None, jobs: Mapping[str, str]
    ) -> None:
        if not life.is_created:
            if life.kind is Kind.POD:
                self._create_pod(life)
            else:
                self._create_job(life)
            life.is_created = True
            return
        if pod is not None:
            life.job_id = pod["metadata"]["labels"].get(names.JOB_ID_LABEL, life.job_id)
        elif not life.job_id:
            life.job_id = self._job_named(life.name)
        runs = jobs.get(life.job_id) == "RUNNING" and (pod is None or _runs(pod))
        if life.fate is Fate.IS_CANCELLED and runs and not life.is_cancelled:
            self._sandbox.run("scancel", life.job_id)
            life.is_cancelled = True

    def _job_named(self, name: str) -> str:
        """Ask sacct for the last job of a pod that came and went between two looks; "" if there is none yet."""
        found = self._sandbox.run("sacct", "-X", "-n", "-P", f"--name={name}", "-o", "JobID")
        return next(reversed(found.split()), "")

    def _is_over(
        self,
        life: DeviceLife,
        pods: Mapping[str, Mapping[str, Any]],
        jobs: Mapping[str, str],
    ) -> bool:
        if not life.job_id or life.job_id in jobs:
            return False
        pod = pods.get(life.name)
        if pod is not None:
            has_ended = pod["status"].get("phase") in ("Succeeded", "Failed")
            if not has_ended or names.FINALIZER in pod["metadata"].get("finalizers", ()):
                return False
            with suppress(*_AWAY):
                self._sandbox.admin.delete(f"{self._pods}/{life.name}")
        return True

    def _create_pod(self, life: DeviceLife) -> None:
        script = hands.of_container(life.name, life.takes_s, life.code)
        try:
            create_pod(self._sandbox, self._namespace, life.name, script, devices=life.devices)
        except ApiError as error:
            if error.status != 409:  # the reply of an earlier one was lost
                raise

    def _create_job(self, life: DeviceLife) -> None:
        life.job_id = batch(
            self._sandbox,
            hands.of_job(life.name, life.takes_s, life.code),
            f"--job-name={life.name}",
            f"--gres={claimants.GRES}:{life.devices}",
            *([f"--qos={_URGENT}"] if life.kind is Kind.URGENT else []),
        )

    def _strike(self) -> None:
        node = self._dice.choice(self._sandbox.instance.options.real_node_names)
        struck = self._dice.choice((*_DAEMONS, *SERVICES))
        with suppress(*_AWAY):
            if struck not in SERVICES:
                self._sandbox.end_daemon(node, struck)
                self.faults[struck] += 1
            elif self._all_answer():
                self._sandbox.restart(struck, signal="KILL", wait=False)
                self.faults[struck] += 1
        self._fault_at = time.monotonic() + self._dice.uniform(*_FAULT_EVERY_S)

    def _all_answer(self) -> bool:
        """Check whether nobody of ours is away: a job that is held by neither waits for a first answer for AWAY_S only."""
        parts = self._sandbox.status()
        return all(parts[name].state == "up" for name in SERVICES)

    def learn_ends(self) -> None:
        """Ask sacct how each ended; it may learn of an end a little later."""
        for _ in range(20):
            open_ones = [life for life in self._todo if life.job_id and not life.end]
            if not open_ones:
                return
            wanted = ",".join(life.job_id for life in open_ones)
            told = self._sandbox.run(
                *("sacct", "-X", "-n", "-P", "-j", wanted, "-o", "JobID,State,ExitCode")
            )
            ends = {line.split("|")[0]: line.split("|")[1:] for line in told.splitlines()}
            preempted = lives.preempted(self._sandbox.instance.log("slurmctld").read_text())
            for life in open_ones:
                state, code = ends.get(life.job_id, ("RUNNING", ""))
                if state not in ("PENDING", "RUNNING", "COMPLETING"):
                    is_preempted = life.job_id in preempted
                    life.end = lives.end_of(state, code, is_preempted=is_preempted)
            time.sleep(_LOOKS_EVERY_S)


def _runs(pod: Mapping[str, Any]) -> bool:
    return any(
        "running" in container_status["state"]
        for container_status in pod["status"].get("containerStatuses", ())
    )


def create_pod(
    sandbox: Sandbox, namespace: str, name: str, script: str, *, devices: int, node: str = ""
) -> None:
    """Create a pod whose container claims devices and holds them."""
    spec = running([script], node=node, host_folder=hands.FOLDER)
    spec["containers"][0]["resources"]["claims"] = [{"name": "devices"}]
    template = f"devices-{devices}"
    spec["resourceClaims"] = [{"name": "devices", "resourceClaimTemplateName": template}]
    body = {"metadata": {"name": name}, "spec": spec}
    sandbox.admin.create(f"/api/v1/namespaces/{namespace}/pods", body)


def batch(sandbox: Sandbox, script: str, *asked: str) -> str:
    """Submit a batch job of root's and return its id."""
    shape = ("--parsable", "--chdir=/", "--cpus-per-task=1", "--mem=64", "--output=/dev/null")
    return sandbox.run("sbatch", *shape, *asked, f"--wrap={script}").strip()


def make_ready(sandbox: Sandbox) -> None:
    """Vouch for the order of devices, and let root's urgent jobs preempt the others."""
    claimants.create_class(sandbox)
    labels = {"metadata": {"labels": {names.DEVICE_ORDER_LABEL: "by-name"}}}
    sandbox.run("sacctmgr", "-i", "add", "qos", _URGENT, "Preempt=normal", "Priority=1000")
    sandbox.run("sacctmgr", "-i", "modify", "user", "root", "set", f"qos+={_URGENT}")
    for node in sandbox.instance.options.real_node_names:
        sandbox.admin.patch(f"/api/v1/nodes/{node}", labels)
        wait_until(
            lambda node=node: claimants.is_offered(sandbox, node, lives.MOST_DEVICES),  # type: ignore[misc]  # bound now
            _SETTLES_WITHIN_S,
            sandbox=sandbox,
        )


def prove(sandbox: Sandbox, namespace: str, node: str) -> None:
    """Let a job take devices that a pod and a job have: a check that does not see it is worth nothing.

    Raises:
        AssertionError: it sees something else.
    """
    hands.prepare(sandbox, node)
    job = hands.of_job("job", 600, 0)
    batch(sandbox, job, f"--nodelist={node}", f"--gres={claimants.GRES}:1")
    pod = hands.of_container("pod", 600, 0)
    create_pod(sandbox, namespace, "pod", pod, devices=1, node=node)

    def owners() -> Sequence[str]:
        there = hands.held(sandbox, node)
        return [device for each in there for device in each.devices] if len(there) > 1 else ()

    devices = wait_until(owners, _SETTLES_WITHIN_S, sandbox=sandbox)
    if found := hands.twice(sandbox, node):
        raise AssertionError(f"devices in two hands before anybody took one: {found}")
    thief = hands.of_thief("thief", devices)
    sandbox.on_node(node, "sh", "-c", f"({thief}) < /dev/null")
    for device, line in zip(devices, hands.twice(sandbox, node), strict=True):
        if line.split()[:3] != ["thief", device, hands.TAKEN]:
            raise AssertionError(f"the theft of {device} was seen as {line}")
    sandbox.run("scancel", "--user=root")
    sandbox.admin.delete(f"/api/v1/namespaces/{namespace}/pods/pod")
    wait_until(lambda: not sandbox.run("squeue", "-h").strip(), _SETTLES_WITHIN_S, sandbox=sandbox)


def live(sandbox: Sandbox, namespace: str, *, seed: int, count: int) -> dict[str, Any]:
    """Let some of them live, calm down, and compare."""
    nodes = sandbox.instance.options.real_node_names
    for node in nodes:
        hands.prepare(sandbox, node)
    claimants.create_templates(sandbox, namespace, lives.MOST_DEVICES)
    todo = lives.draw(seed, count)
    field = DeviceField(sandbox, namespace, todo, random.Random(seed))  # noqa: S311  # seeded: the same draws come again
    field.live()
    field.learn_ends()
    held = {node: hands.held(sandbox, node) for node in nodes}
    twice = {node: hands.twice(sandbox, node) for node in nodes}
    breaches = list(lives.breaches(todo, held, twice, f"0-{(os.cpu_count() or 1) - 1}"))
    breaches += _unreturned(sandbox, namespace)
    return {
        "lives": Counter(life.kind.value for life in todo),
        "ends": Counter(life.end or "none" for life in todo),
        "hands": sum(len(each.devices) for there in held.values() for each in there),
        "faults": field.faults,
        "breaches": [f"seed {seed}: {breach}" for breach in breaches],
    }


def _unreturned(sandbox: Sandbox, namespace: str) -> list[str]:
    """Return which claims still have devices although nobody is there."""
    path = f"{claimants.API}/namespaces/{namespace}/resourceclaims"

    def still() -> list[str]:
        items = sandbox.admin.get(path)["items"]
        return [
            item["metadata"]["name"] for item in items if "allocation" in item.get("status", {})
        ]

    with suppress(AssertionError):
        wait_until(lambda: not still(), _SETTLES_WITHIN_S)
    return [f"claim {name} still has devices" for name in still()]


def main(
    *,
    count: Annotated[int, typer.Option(help="How many pods and jobs.", min=1)] = 1000,
    nodes: Annotated[int, typer.Option(help="How many nodes.", min=1)] = 4,
    batch_size: Annotated[int, typer.Option(help="How many with one seed.", min=1)] = 100,
    minutes: Annotated[
        float, typer.Option(help="Begin no batch after so many; 0: go on to the end.", min=0)
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 1,
    anew: Annotated[bool, typer.Option(help="Forget what was found before.")] = False,
) -> None:
    """Find out whether a device can be in two hands."""
    began_s = time.monotonic()
    found = _found(report.about(seed), nodes=nodes, batch_size=batch_size, anew=anew)
    if found["done"] < count:
        with running_sandbox(replace(_OPTIONS, real_nodes=nodes)) as sandbox:
            make_ready(sandbox)
            with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as namespace:
                claimants.create_templates(sandbox, namespace, 1)
                prove(sandbox, namespace, sandbox.instance.options.real_node_names[0])
            while found["done"] < count:
                if minutes and time.monotonic() - began_s >= minutes * 60:
                    break
                _one_batch(sandbox, found, min(batch_size, count - found["done"]))
    raise typer.Exit(1 if found["breaches"] else 0)


def _found(
    about: Mapping[str, object], *, nodes: int, batch_size: int, anew: bool
) -> dict[str, Any]:
    """Return what an earlier call of the same code found so far, or nothing yet."""
    same = {**about, "nodes": nodes, "batch_size": batch_size}
    del same["at"]
    before = report.kept("devices")
    if before is not None and not anew and same.items() <= before.items():
        return {**before, **{name: Counter(before[name]) for name in _SUMS}}
    sums = {name: Counter[str]() for name in _SUMS}
    return {**about, **same, "done": 0, "hands": 0, **sums, "breaches": []}


def _one_batch(sandbox: Sandbox, found: dict[str, Any], count: int) -> None:
    """Let some more live, and keep what was found."""
    of_batch = 1000 * found["seed"] + found["done"] // found["batch_size"]
    with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as namespace:
        one = live(sandbox, namespace, seed=of_batch, count=count)
    found["done"] += count
    found["at"] = report.now()
    for name in (*_SUMS, "hands", "breaches"):
        found[name] += one[name]
    typer.echo(
        f"{found['done']} pods and jobs, {found['hands']} devices held, "
        f"{len(found['breaches'])} contracts broken"
    )
    for line in one["breaches"]:
        typer.echo(f"  {line}")
    if one["breaches"]:
        logs = report.KEPT / f"devices-{of_batch}"
        shutil.copytree(sandbox.instance.root / "log", logs, dirs_exist_ok=True)
        typer.echo(f"  the logs are in {logs}")
    report.keep("devices", found)


if __name__ == "__main__":
    typer.run(main)
