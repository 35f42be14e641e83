"""Our three services and the bridge's kube-scheduler as parts, with the rights and settings they have in a cluster."""

import os
import sys
from functools import partial
from pathlib import Path

import yaml

from sandbox import chart, detours, escrow, identity, kubeconfig, kubernetes, probes, slurm_rest
from sandbox.chart import ChartOutput
from sandbox.instance import Instance
from sandbox.operator import names as naming
from sandbox.options import Options
from sandbox.part import Part

_ROOT = Path(__file__).parents[2]


def parts(instance: Instance, programs: Path, rendered: ChartOutput) -> tuple[Part, ...]:
    """Return our programs and bridge-scheduler."""
    ours = (
        _service(
            instance,
            rendered,
            name,
            needs=("apiserver",) if name == "webhook" else ("apiserver", "slurmrestd"),
        )
        for name in instance.options.services
    )
    return (*ours, _scheduler(instance, programs, rendered))


def _service(
    instance: Instance, rendered: ChartOutput, name: str, *, needs: tuple[str, ...]
) -> Part:
    port = name if name in instance.ports else f"{name}-health"
    program = "leader" if name == "extender" and instance.options.together else name
    return Part(
        name=name,
        argv=(
            *_names_of_services(instance),
            *command(instance.options, program),
            "--config",
            str(instance.bridge / name / "config.yaml"),
            *chart.arguments(name),
        ),
        env={"PYTHONPATH": module_path(), "PYTHONUNBUFFERED": "1"},
        identity=identity.caller(),
        folder=instance.bridge / name,
        port=instance.ports[port],
        answers=partial(probes.says_yes, f"{instance.url(f'{name}-health')}/readyz"),
        needs=needs,
        prepare=partial(_configure, instance, rendered, name),
        restarts=True,
    )


def command(options: Options, program: str) -> tuple[str, ...]:
    """Return the beginning of the command of one of our programs."""
    in_a_hurry = ("sandbox.hurried", str(options.lease_s)) if options.hurried else ()
    return (sys.executable, "-m", *(in_a_hurry if program != "webhook" else ()), program)


def _names_of_services(instance: Instance) -> tuple[str, ...]:
    """Return the prefix of a service's command with which it finds slurm-operator's Slurm in pods."""
    return naming.with_hosts(naming.hosts_file(instance)) if instance.options.operator else ()


def module_path() -> str:
    """Return the services' PYTHONPATH: our packages, installed or not, and our own search path."""
    ours = (str(_ROOT), str(_ROOT / "client"), str(_ROOT / "dev"))
    return os.pathsep.join(filter(None, (*ours, os.environ.get("PYTHONPATH"))))


def _configure(instance: Instance, rendered: ChartOutput, name: str) -> None:
    """Write the service's settings: the chart's, with local paths and addresses instead of the pod's."""
    chart.apply(instance)
    folder = instance.bridge / name
    ports = detours.ports(instance, name)
    credentials = kubeconfig.for_server(
        chart.credentials(instance, name),
        folder / "kubeconfig.detour",
        server=f"https://127.0.0.1:{ports['apiserver']}",
    )
    pair = {"cert_file": str(folder / "tls.crt"), "key_file": str(folder / "tls.key")}
    local: dict[str, dict[str, object]] = {
        "kubernetes": {"kubeconfig": str(credentials)},
        "slurm": {
            "token_file": str(slurm_rest.token_file(instance)),
            "url": f"http://127.0.0.1:{ports['slurmrestd']}",
            "controller_port": ports["slurmctld"],
        },
        "extender": {"client_ca_file": str(folder / "ca.crt")},
        "health": {"listen": f"127.0.0.1:{instance.ports[f'{name}-health']}"},
    }
    if name in ("webhook", "extender"):
        local["server"] = {**pair, "listen": f"127.0.0.1:{instance.ports[name]}"}
    if rendered.settings["slurm"].get("controller"):
        del local["slurm"]
    if instance.options.escrow and name in escrow.PROGRAMS:
        local["escrow"] = {
            "listen": f"127.0.0.1:{instance.ports[f'{name}-escrow']}",
            "token_file": str(escrow.beside_certificate(instance, folder)),
        }
    for section, here in local.items():
        local[section] = {**rendered.settings.get(section, {}), **here}
    (folder / "config.yaml").write_text(yaml.safe_dump({**rendered.settings, **local}))


def _scheduler(instance: Instance, programs: Path, rendered: ChartOutput) -> Part:
    folder = instance.bridge / "scheduler"
    return Part(
        name="bridge-scheduler",
        env=kubernetes.GO,
        argv=(
            str(programs / "kube-scheduler"),
            f"--config={folder / 'scheduler.yaml'}",
            f"--feature-gates={rendered.feature_gates}",
            *kubernetes.serving(instance, "bridge-scheduler"),
        ),
        identity=identity.servers(),
        folder=folder,
        port=instance.ports["bridge-scheduler"],
        answers=kubernetes.healthy(instance, "bridge-scheduler"),
        needs=("apiserver",),
        prepare=partial(_configure_scheduler, instance, rendered),
        restarts=True,
    )


def _configure_scheduler(instance: Instance, rendered: ChartOutput) -> None:
    chart.apply(instance)
    (instance.bridge / "scheduler" / "scheduler.yaml").write_text(rendered.scheduler_config)
    chart.credentials(instance, "scheduler")
