"""`make test-e2e-sets`: JobSet's and LeaderWorkerSet's own tests, plain and bridged; ends with 1 if bridged ones are worse."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from sandbox import assets
from sandbox.assets import Asset, AssetName
from sandbox.client import Sandbox
from sandbox.options import Options
from sandbox.realnodes import images
from sandbox.realnodes.images import Entry, Image
from slurmruntime.values import names
from tests.servers import running_sandbox, wait_until
from tests.upstream import ground, results
from tests.upstream.results import Subject
from tests.upstream.selection import SETS_EXCUSED, SETS_LEFT_OUT

OPTIONS = Options(
    nodes=0,
    plain_nodes=0,
    real_nodes=6,
    real_memory_mib=8192,
    dns=True,
    workloads=("jobset", "lws"),
    settings=("slurm.milli_cpu_per_cpu=100", "placement.default_cpus=0.1"),
)
"""The tests' pods request nothing, and there are more of them than processors."""
SUITES = ("e2e-jobset", "e2e-lws")
BRIDGED_USER = "bridged-tests"
"""Who runs the bridged tests: the namespaces that they create get our label."""
_PROGRAMS = (AssetName.E2E_SETS, AssetName.NODE)
_LABELLED = f'Object{{metadata: Object.metadata{{labels: {{"{names.ENABLED_LABEL}": "true"}}}}}}'
_NOT_PULLED = (
    "Object{spec: Object.spec{containers: object.spec.containers.map(c, "
    'Object.spec.containers{name: c.name, imagePullPolicy: "IfNotPresent"})}}'
)
_READY_S = 120.0
_GRACE_S = 120.0
_ROUNDS = (
    {"e2e-jobset": "plain", "e2e-lws": "bridged"},
    {"e2e-jobset": "bridged", "e2e-lws": "plain"},
)
"""Each suite at the side of the other, so that it never runs twice at once: both use fixed names."""


def main(
    *,
    page: Annotated[Path, typer.Option(help="The page to write.")],
    focus: Annotated[str, typer.Option(help="Only tests whose names match; no page.")] = "",
    minutes: Annotated[int, typer.Option(help="How long each of the two rounds may take.")] = 20,
    reports: Annotated[
        Path | None, typer.Option(help="Keep logs and reports there.", show_default="nowhere")
    ] = None,
) -> None:
    """Run the tests of both suites in plain and in bridged namespaces, and compare."""
    with assets.shown(sys.stderr) as report:
        programs = assets.resolve_all(_PROGRAMS, report=report)
    suites = programs[AssetName.E2E_SETS]
    with tempfile.TemporaryDirectory() as scratch, running_sandbox(OPTIONS) as sandbox:
        folder = (reports or Path(scratch)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        _prepare(sandbox, programs[AssetName.NODE], folder)
        found: dict[str, dict[str, str]] = {"plain": {}, "bridged": {}}
        for sides in _ROUNDS:
            for side, outcomes in _run(
                sandbox, suites, sides, focus=focus, limit_s=minutes * 60.0, folder=folder
            ):
                found[side] |= outcomes
    outcome = results.compare(found["plain"], found["bridged"], SETS_EXCUSED)
    text = results.page(outcome, _subject(_versions(suites)))
    if reports is not None:
        (reports / "page.md").write_text(text)
    if not focus:
        page.write_text(text)
    typer.echo(results.summary(outcome))
    if outcome.worse:
        raise typer.Exit(1)


def _subject(versions: str) -> Subject:
    return Subject(
        title="JobSet's and LeaderWorkerSet's own tests",
        introduction=(
            f"Written by `make test-e2e-sets`: the end-to-end tests (`test/e2e`) of {versions}, once in plain",
            "namespaces and once with every namespace they create labelled for slurm-bridge, on real kubelets ([development](development.md)).",
            "The controllers are compiled from the same modules. The pods are placed by kube-scheduler there and by Slurm here; the tests know nothing of it.",
        ),
        left_out=SETS_LEFT_OUT,
        images=(
            "The images that the tests name are made here, from busybox and this machine's bash. As no registry is asked for them,\n"
            "an admission policy sets `imagePullPolicy: IfNotPresent`, in both namespaces. The pods request nothing, and are more than the\n"
            "processors, so one CPU of Slurm is 100m ([small pods](small-pods.md)), and a pod gets one. The controllers run outside the cluster;\n"
            "a Deployment of JobSet's name, which its tests look for, stands in for its own."
        ),
    )


def _versions(suites: Asset) -> str:
    command = (suites.bin / "e2e-sets",)
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return re.sub(
        r"\b(jobset|lws)\b",
        lambda found: {"jobset": "JobSet", "lws": "LeaderWorkerSet"}[found[0]],
        told,
    ).replace(", ", " and ")


def _prepare(sandbox: Sandbox, node: Asset, folder: Path) -> None:
    """Give the nodes the images, and Kubernetes some of the nodes, and label bridged namespaces."""
    for archive in _images(node, folder):
        sandbox.load_image(archive)
    ground.keep_for_kubernetes(sandbox)
    is_bridged = f"request.userInfo.username == '{BRIDGED_USER}'"
    _mutate(sandbox, "bridged-tests", "namespaces", is_bridged, _LABELLED)
    _mutate(sandbox, "no-registry", "pods", "true", _NOT_PULLED)
    wait_until(lambda: _pulls(sandbox) == "IfNotPresent", _READY_S, sandbox=sandbox)
    _stand_in(sandbox)


def _mutate(sandbox: Sandbox, name: str, resource: str, condition: str, mutation: str) -> None:
    """Have the API server change objects at CREATE."""
    group = "/apis/admissionregistration.k8s.io/v1"
    rules = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": [resource],
    }
    policy = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rules]},
            "matchConditions": [{"name": "these", "expression": condition}],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "IfNeeded",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": mutation},
                }
            ],
        },
    }
    sandbox.admin.create(f"{group}/mutatingadmissionpolicies", policy)
    binding = {"metadata": {"name": name}, "spec": {"policyName": name}}
    sandbox.admin.create(f"{group}/mutatingadmissionpolicybindings", binding)


def _pulls(sandbox: Sandbox) -> str:
    """Try what becomes of a pod: a new policy is in force only after a while, and the later one last."""
    container = {"name": "probe", "image": "busybox"}
    body = {"metadata": {"name": "probe"}, "spec": {"containers": [container]}}
    path = "/api/v1/namespaces/default/pods"
    made = sandbox.admin.request("POST", path, body, params={"dryRun": "All"})
    return str(made["spec"]["containers"][0]["imagePullPolicy"])


def _stand_in(sandbox: Sandbox) -> None:
    """JobSet's tests wait for its Deployment; its controller is the sandbox's own process."""
    namespace, name = "jobset-system", "jobset-controller-manager"
    labels = {"app": name}
    container = {"name": "stand-in", "image": "busybox", "command": ["sleep", "86400"]}
    deployment = {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    if namespace not in {
        item["metadata"]["name"] for item in sandbox.admin.get("/api/v1/namespaces")["items"]
    }:
        sandbox.admin.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    sandbox.admin.create(path, deployment)
    wait_until(
        lambda: sandbox.admin.get(f"{path}/{name}")["status"].get("availableReplicas"),
        _READY_S,
        sandbox=sandbox,
    )


def _run(
    sandbox: Sandbox,
    suites: Asset,
    sides: Mapping[str, str],
    *,
    focus: str,
    limit_s: float,
    folder: Path,
) -> Iterator[tuple[str, dict[str, str]]]:
    """Run each suite on its side, at once; yield the outcomes by side."""
    configs = {
        "plain": sandbox.kubeconfig,
        "bridged": sandbox.user_kubeconfig(BRIDGED_USER, "system:masters"),
    }
    with ExitStack() as ending:
        running = []
        for suite, side in sides.items():
            out = folder / f"{suite}-{side}"
            out.mkdir(exist_ok=True)
            command = (
                str(suites.bin / suite),
                "--ginkgo.no-color",
                "--ginkgo.v",
                f"--ginkgo.timeout={limit_s:.0f}s",
                f"--ginkgo.focus={focus}",
                f"--ginkgo.skip={'|'.join(SETS_LEFT_OUT)}",
                f"--ginkgo.junit-report={out / 'junit.xml'}",
                f"--test.timeout={limit_s + _GRACE_S:.0f}s",
            )
            with (out / "log").open("w") as log:
                process = subprocess.Popen(
                    command,
                    env={**os.environ, "KUBECONFIG": str(configs[side])},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=out,
                )
            ending.callback(process.kill)
            running.append((suite, side, out, process))
        for suite, side, out, process in running:
            process.wait(limit_s + 2 * _GRACE_S)
            called = suite.removeprefix("e2e-")
            yield (
                side,
                {
                    f"[{called}] {name}": each
                    for name, each in results.read(out / "junit.xml").items()
                },
            )


def _images(node: Asset, folder: Path) -> Iterator[Path]:
    """Make what the tests name: a bash with the usual commands, and a web server on port 8080."""
    if node.root is None:
        raise ValueError(f"{node.bin} has no root/ beside it")
    box = node.root / "usr" / "bin" / "busybox"
    listed = subprocess.run([box, "--list"], check=True, capture_output=True, text=True)
    base = list(images.busybox_entries(box, listed.stdout.split()))
    # The first process of a container has no default reaction to SIGTERM; nginx has its own.
    serve = ("sh", "-c", "httpd -f -p 8080 -h /srv & trap 'exit 0' TERM; wait")
    page = [Entry(path="srv", is_folder=True), Entry(path="srv/index.html", data=b"ok\n")]
    made = (
        (Image(name="docker.io/library/bash:latest", command=("bash",)), [*base, *_bash()]),
        (
            Image(name="docker.io/nginxinc/nginx-unprivileged:1.27", command=serve, user="101"),
            [*base, *page],
        ),
    )
    for number, (image, entries) in enumerate(made):
        archive = folder / f"{number}.tar"
        images.archive(archive, image, images.layer_of(entries))
        yield archive


def _bash() -> Iterator[Entry]:
    """Yield this machine's bash and the libraries that it is linked with."""
    program = Path("/bin/bash")
    told = subprocess.run(["/usr/bin/ldd", program], check=True, capture_output=True, text=True)
    libraries = [Path(each) for each in re.findall(r"(/\S+) \(0x", told.stdout)]
    folders = {parent for library in libraries for parent in library.relative_to("/").parents}
    for folder in sorted(folders - {Path(), Path("bin")}):
        yield Entry(path=str(folder), is_folder=True)
    for each in (program, *libraries):
        yield Entry(path=str(each.relative_to("/")), data=each.read_bytes())


if __name__ == "__main__":
    typer.run(main)
