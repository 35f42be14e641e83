"""`slurm-bridge demo-operator`: a Slurm of pods from six lines, as a story on real kubelets.

Exits with 0 only if each step did what it should: `srun` on two workers, on four, and a drain that waited for a job.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sandbox import machine
from sandbox.client import Sandbox
from sandbox.demo_screen import Screen, Source
from sandbox.errors import SandboxError
from sandbox.operator import images
from sandbox.operator.serving import CLUSTER, cluster_file
from sandbox.options import OPERATED_NODES, Options

NAMESPACE = "slurm"
SHAPE = Options(
    slurm=False,
    bridge=False,
    operator=True,
    nodes=0,
    plain_nodes=0,
    real_nodes=OPERATED_NODES,
    real_memory_mib=3072,
    dns=True,
)
DEADLINE_S = 120.0
DRAIN_S = 120.0
_SRUN_S = 20
_JOB_S = 20
_WORKERS = "nodeset/slurm-worker-cpu"
_LOGIN = ("kubectl", "-n", NAMESPACE, "exec", "deploy/slurm-login", "-c", "login", "--")
_QUEUE = ("squeue", "--states=all", "--format=%.5i %.10j %.10T %.5M %N")


def run(
    *, keep: Annotated[bool, typer.Option("--keep", help="Leave the sandbox running.")] = False
) -> None:
    """Show a Slurm in pods: six lines of YAML, two workers, then four, and a drain that waits for a job; needs root."""
    screen = Screen()
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-demo-"))
    folder.chmod(0o755)
    try:
        _check(folder)
        images.ready()
        screen.chapter("Four Kubernetes nodes with real kubelets, and slurm-operator")
        sandbox = Sandbox.up(folder, SHAPE, outlives_us=keep, progress=screen.say)
    except SandboxError as error:
        shutil.rmtree(folder, ignore_errors=True)
        screen.complain(f"error: {error}")
        raise typer.Exit(1) from None
    try:
        fault = _OperatorStory(sandbox, screen).tell()
    except (SandboxError, subprocess.TimeoutExpired) as error:
        fault = str(error)
    if fault:
        screen.complain(f"{fault}\n{sandbox.log_tails()}")
    if keep:
        screen.say(f"still running: . {folder}/env; slurm-bridge sandbox down --state {folder}")
    else:
        sandbox.down()
        shutil.rmtree(folder, ignore_errors=True)
        screen.say("everything is stopped and removed")
    raise typer.Exit(1 if fault else 0)


def _check(folder: Path) -> None:
    faults = [finding for finding in machine.findings(folder, SHAPE) if finding.stops]
    if faults:
        problems = "".join(f"\n  {fault.what}\n    {fault.remedy}" for fault in faults)
        raise SandboxError(f"no real nodes on this machine:{problems}")


class _OperatorStory:
    """The chapters, in order; each returns what went wrong, or ""."""

    def __init__(self, sandbox: Sandbox, screen: Screen) -> None:
        self._sandbox = sandbox
        self._screen = screen
        pods = ("kubectl", "-n", NAMESPACE, "get", "pods")
        self._pods = Source(" ".join(pods), lambda: self._output_of(*pods))
        self._nodes = Source("sinfo", lambda: self._output_of(*_LOGIN, "sinfo"))
        self._queue = Source("squeue", lambda: self._output_of(*_LOGIN, *_QUEUE))

    def tell(self) -> str:
        """Run the whole demo; return what did not go as expected."""
        return self._make() or self._grow() or self._drain()

    def _make(self) -> str:
        self._screen.chapter("A Slurm cluster is six lines")
        self._screen.command(f"cat {CLUSTER.name}", CLUSTER.read_text())
        own = str(cluster_file(self._sandbox.instance))
        merge = ("patch", "--local", "-f", str(CLUSTER), "--type=merge", "--patch-file", own)
        apply = ("-n", NAMESPACE, "apply", "--server-side", "-f", "-")
        self._do("kubectl", "create", "namespace", NAMESPACE)
        began_s = time.monotonic()
        manifest = self._sandbox.kubectl(*merge, "-o", "yaml")
        self._sandbox.kubectl(*apply, stdin=manifest)
        self._screen.command(f"kubectl {' '.join(merge)} -o yaml | kubectl {' '.join(apply)}")
        return self._await_workers(2, began_s)

    def _grow(self) -> str:
        self._screen.chapter("Two more workers")
        began_s = time.monotonic()
        four = '{"spec":{"nodes":[{"name":"cpu","replicas":4}]}}'
        where = ("-n", NAMESPACE, "patch", "slurmcluster", "slurm")
        self._do("kubectl", *where, "--type=merge", "-p", four)
        return self._await_workers(4, began_s)

    def _drain(self) -> str:
        self._screen.chapter(
            "kubectl drain waits for a job",
            "slurm-operator drains the worker in Slurm, and releases its pod when the job has ended.",
        )
        known = "jsonpath={.status.conditions[?(@.type=='SlurmKnown')].status}"
        get = ("kubectl", "-n", NAMESPACE, "get")
        if not self._await(lambda: self._output_of(*get, _WORKERS, "-o", known) == "True"):
            return f"slurm-operator did not read Slurm within {DEADLINE_S:.0f} s"
        where = ("pod", "slurm-worker-cpu-0", "-o", "jsonpath={.spec.nodeName}")
        kube_node = self._sandbox.run(*get, *where)
        sleeps = ("sbatch", "--parsable", "--output=/dev/null", "-w", "cpu-0")
        job = self._sandbox.run(*_LOGIN, *sleeps, f"--wrap=sleep {_JOB_S}").strip()
        self._screen.command(f"sbatch -w cpu-0 --wrap='sleep {_JOB_S}'", f"job {job}")
        if not self._await(lambda: self._state(job) == "RUNNING"):
            return f"job {job} did not start within {DEADLINE_S:.0f} s"
        only = "--pod-selector=app.kubernetes.io/name=slurmd"
        drain = ("kubectl", "drain", kube_node, only, "--delete-emptydir-data")
        self._screen.command(" ".join(drain))
        with subprocess.Popen(
            (self._sandbox.instance.bin / "kubectl", *drain[1:], f"--timeout={DRAIN_S:.0f}s"),
            env=self._sandbox.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as draining:
            with self._screen.watch() as watch:
                watch.until(
                    lambda: draining.poll() is not None,
                    deadline_s=DRAIN_S,
                    left=self._pods,
                    right=self._queue,
                )
            draining.terminate()
        if draining.returncode != 0:
            return f"{kube_node} was not drained within {DRAIN_S:.0f} s"
        if (state := self._state(job)) != "COMPLETED":
            return f"job {job} is {state}: expected the drain to wait until it is COMPLETED"
        self._screen.say(f"job {job} is COMPLETED, and {kube_node} is drained")
        return ""

    def _await_workers(self, count: int, began_s: float) -> str:
        """Watch until srun runs on this many workers; return what went wrong, or ""."""
        answers: list[str] = []

        def have_answered() -> bool:
            if self._ready_workers() >= count:
                answers[:] = self._output_of(*_LOGIN, *_bounded(count)).split()
            return len(answers) == count

        with self._screen.watch() as watch:
            done = watch.until(
                have_answered, deadline_s=DEADLINE_S, left=self._pods, right=self._nodes
            )
        if not done:
            return f"srun did not run on {count} workers within {DEADLINE_S:.0f} s"
        seconds = time.monotonic() - began_s
        self._screen.command(f"srun -N{count} hostname", "\n".join(sorted(answers)))
        self._screen.say(f"{seconds:.1f} s after the command")
        return ""

    def _ready_workers(self) -> int:
        path = ("get", _WORKERS, "-o", "jsonpath={.status.readyReplicas}")
        return int(self._output_of("kubectl", "-n", NAMESPACE, *path) or 0)

    def _state(self, job: str) -> str:
        return self._output_of(*_LOGIN, *_QUEUE[:2], "-h", "-j", job, "-o", "%T").strip()

    def _await(self, condition: Callable[[], bool]) -> bool:
        with self._screen.watch() as watch:
            return watch.until(condition, deadline_s=DEADLINE_S, left=self._pods, right=self._nodes)

    def _output_of(self, *command: str) -> str:
        """Run a command; return its output, or "" if it cannot run yet."""
        try:
            return self._sandbox.run(*command)
        except SandboxError:
            return ""

    def _do(self, *command: str) -> None:
        self._screen.command(" ".join(command), self._sandbox.run(*command))


def _bounded(workers: int) -> tuple[str, ...]:
    """Return an srun command that does not wait for nodes that do not exist yet."""
    return ("timeout", str(_SRUN_S), "srun", "--quiet", f"-N{workers}", "hostname")
