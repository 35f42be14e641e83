"""`slurm-bridge demo`: the main use case on real parts, as a story.

On a machine that can run real nodes, its containers are real, too. Exits with 0 only if every pod ended
as expected.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer
import yaml

from sandbox import machine
from sandbox.client import Sandbox
from sandbox.demo_pods import on_real_nodes
from sandbox.demo_screen import Screen, Source
from sandbox.errors import SandboxError
from sandbox.options import Options
from slurmruntime.values import names

NAMESPACE = "research"
MANIFEST = Path(__file__).with_name("demo.yaml")
DEADLINE_S = 90.0

_SHAPE = Options(accounting=True, nodes=2)
_REAL_SHAPE = Options(accounting=True, nodes=0, real_nodes=2, real_gpus=4)
_PLAIN = ("small", "wide", "gpu")
_SWEEPS = 3
_QUEUE = ("squeue", "--format", "%.5i %.12j %.2t %.5M %R")
_JOB_ID_LABEL = names.JOB_ID_LABEL.replace(".", r"\.")  # escaped for jsonpath
_SACCT = ("sacct", "-X", "--format", "JobID,JobName%14,State%16,ExitCode,NodeList%10,Elapsed")


def run(
    *, keep: Annotated[bool, typer.Option("--keep", help="Leave the sandbox running.")] = False
) -> None:
    """Show ordinary pods placed by Slurm: a minute, on real Kubernetes and real Slurm."""
    screen = Screen()
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-demo-"))
    folder.chmod(0o755)
    try:
        shape, why = _choose(folder)
        screen.chapter("A Kubernetes cluster and a Slurm cluster, on this machine", why)
        sandbox = Sandbox.up(folder, shape, outlives_us=keep, progress=screen.say)
    except SandboxError as error:
        shutil.rmtree(folder, ignore_errors=True)
        screen.complain(f"error: {error}")
        raise typer.Exit(1) from None
    try:
        faults = _Story(sandbox, screen).tell()
    except SandboxError as error:
        faults = [str(error), sandbox.log_tails()]
    if keep:
        screen.say(f"still running: . {folder}/env; slurm-bridge sandbox down --state {folder}")
    else:
        sandbox.down()
        shutil.rmtree(folder, ignore_errors=True)
        screen.say("everything is stopped and removed")
    for fault in faults:
        screen.complain(fault)
    raise typer.Exit(1 if faults else 0)


def _choose(folder: Path) -> tuple[Options, str]:
    """Return the shape of the sandbox, with real nodes if they can run here, and a sentence about it."""
    faults = [finding for finding in machine.findings(folder, _REAL_SHAPE) if finding.stops]
    if faults:
        return _SHAPE, f"Its nodes are simulated: {faults[0].what}."
    return _REAL_SHAPE, "Its nodes have real kubelets, and run real containers."


class _Story:
    """The chapters, in order."""

    def __init__(self, sandbox: Sandbox, screen: Screen) -> None:
        self._sandbox = sandbox
        self._screen = screen
        self._pods = Source(
            f"kubectl -n {NAMESPACE} get pods -o wide",
            lambda: _narrow(self._kubectl("get", "pods", "-o", "wide", "--ignore-not-found")),
        )
        self._queue = Source("squeue", lambda: self._sandbox.run(*_QUEUE))

    def tell(self) -> list[str]:
        """Run the whole demo; return what did not go as expected."""
        self._label()
        self._screen.chapter("Ordinary pods and a Job, submitted as usual")
        manifest = self._manifest()
        self._screen.command(
            f"kubectl -n {NAMESPACE} apply -f {manifest.parent.name}/{manifest.name}",
            self._kubectl("apply", "--filename", str(manifest)),
        )
        if fault := self._run_all():
            return [fault, self._sandbox.log_tails()]
        if self._sandbox.instance.options.real_nodes:
            self._screen.chapter("A container's output")
            self._do("kubectl", "-n", NAMESPACE, "logs", "small")
        self._screen.chapter("Slurm's accounting")
        self._do(*_SACCT)
        return self._faults()

    def _manifest(self) -> Path:
        """Return the pods' manifest; for real nodes, one with commands."""
        if not self._sandbox.instance.options.real_nodes:
            return MANIFEST
        pods = on_real_nodes(list(yaml.safe_load_all(MANIFEST.read_text())))
        path = self._sandbox.instance.root / MANIFEST.name
        path.write_text(yaml.safe_dump_all(pods, sort_keys=False))
        return path

    def _label(self) -> None:
        self._screen.chapter(
            "An administrator hands a namespace to Slurm",
            "The nodes labelled for Slurm are external nodes there; one plain node belongs to Kubernetes alone.",
        )
        self._do("sinfo")
        self._do("kubectl", "create", "namespace", NAMESPACE)
        self._do("kubectl", "label", "namespace", NAMESPACE, f"{names.ENABLED_LABEL}=true")

    def _run_all(self) -> str:
        """Watch the pods run, cancel one, watch the rest; return what did not happen in time."""
        with self._screen.watch() as watch:
            ran = watch.until(
                self._others_have_ended, deadline_s=DEADLINE_S, left=self._pods, right=self._queue
            )
        if not ran:
            return f"the pods did not end within {DEADLINE_S:.0f} s"
        self._cancel()
        with self._screen.watch() as watch:
            gone = watch.until(
                lambda: not self._sandbox.run("squeue", "--noheader").strip(),
                deadline_s=DEADLINE_S,
                left=self._pods,
                right=self._queue,
            )
        return "" if gone else f"placeholders were left after {DEADLINE_S:.0f} s"

    def _cancel(self) -> None:
        self._screen.chapter(
            "An operator cancels one in Slurm; its owner sees the reason in Kubernetes"
        )
        job_id = self._kubectl(
            *("get", "pod", "endless", "-o"),
            f"jsonpath={{.metadata.labels.{_JOB_ID_LABEL}}}",
        )
        self._do("scancel", job_id)
        with self._screen.watch() as watch:
            watch.until(
                lambda: "DisruptionTarget" in self._conditions(),
                deadline_s=DEADLINE_S,
                left=self._pods,
                right=self._queue,
            )
        self._screen.command(
            f"kubectl -n {NAMESPACE} get pod endless -o jsonpath=… # conditions", self._conditions()
        )
        self._do(
            *("kubectl", "-n", NAMESPACE, "get", "events"),
            *("--field-selector", "involvedObject.name=endless"),
            *("-o", "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message"),
        )

    def _conditions(self) -> str:
        return self._kubectl(
            *("get", "pod", "endless", "--ignore-not-found", "-o"),
            "jsonpath={range .status.conditions[?(@.message)]}{.type}={.status} {.reason}: {.message}{'\\n'}{end}",
        )

    def _others_have_ended(self) -> bool:
        rows = self._kubectl("get", "pods", "--no-headers", "--ignore-not-found").splitlines()
        states = [row.split()[2] for row in rows if not row.startswith("endless")]
        return len(states) == len(_PLAIN) + 1 + _SWEEPS and set(states) <= {"Completed", "Error"}

    def _faults(self) -> list[str]:
        """Compare Slurm's records with what the manifest asks for."""
        rows = self._sandbox.run(
            *("sacct", "-X", "--noheader", "--parsable2", "--format", "JobName,State,ExitCode")
        )
        ended = sorted(
            (name.split("-")[0], state.split()[0], code)
            for name, state, code in (row.split("|") for row in rows.splitlines())
        )
        expected = sorted(
            [
                *((name, "COMPLETED", "0:0") for name in _PLAIN),
                *[("sweep", "COMPLETED", "0:0")] * _SWEEPS,
                ("oops", "FAILED", "3:0"),
                ("endless", "CANCELLED", "0:0"),
            ]
        )
        return [] if ended == expected else [f"expected {expected}, sacct shows {ended}"]

    def _kubectl(self, *arguments: str) -> str:
        return self._sandbox.kubectl("-n", NAMESPACE, *arguments)

    def _do(self, *command: str) -> None:
        """Run a command visibly."""
        self._screen.command(" ".join(command), self._sandbox.run(*command))


def _narrow(table: str) -> str:
    """Remove kubectl's last two columns, which are empty here."""
    head = table.partition("\n")[0]
    width = head.find("NOMINATED")
    return "\n".join(line[:width].rstrip() for line in table.splitlines()) if width > 0 else table
