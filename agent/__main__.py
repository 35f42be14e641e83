"""`python -m agent --config FILE`: wiring only."""

import asyncio
import random
import sys
from functools import partial
from pathlib import Path

from agent import machine
from agent.cgroups import Cgroups
from agent.pinner import Pinner
from bridge import __version__
from bridge.settings import configuration
from bridge.settings.schema import Settings
from slurmruntime.kube import resource
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.resource import ObjectVersion, ResourceKind
from slurmruntime.kube.watch import Reflector
from slurmruntime.model.objects import KubeObject
from slurmruntime.process import health, lifetime
from slurmruntime.process.health import Health
from slurmruntime.process.lifetime import Service
from slurmruntime.process.metrics import Metrics
from slurmruntime.process.serve import bind
from slurmruntime.values import names

CGROUP_ROOT = Path("/host/cgroup")
"""Where the chart's DaemonSet mounts the node's cgroups: /sys/fs/cgroup is the container's own."""
SYSTEM_ROOT = Path("/sys/devices/system")
"""Where the kernel describes processors, to containers as well."""
_CONNECTIONS = 2
PODS = ResourceKind(
    path="/api/v1/pods",
    read=resource.kube_object,
    identify=lambda pod: ObjectVersion(
        pod.uid, pod.resource_version, f"{pod.namespace}/{pod.name}"
    ),
    called="pod",
)
"""Pods, by uid; of their specs, only the scheduler name is used."""


def main(cgroup_root: Path = CGROUP_ROOT) -> int:
    """Run until a signal; return the exit code."""
    configured = configuration.load("agent", sys.argv[1:])
    node = configuration.sources("agent", sys.argv[1:]).installation.node
    if not node:
        sys.stderr.write("agent: argument --node is missing: the name of this node\n")
        return 2
    return lifetime.run(partial(run, configured, node, cgroup_root))


async def run(configured: Settings, node: str, cgroup_root: Path, stop: asyncio.Event) -> None:
    """Watch the node's pods and pin them until `stop` is set."""
    metrics, state = Metrics("agent"), Health()
    pods: Cache[KubeObject] = Cache(PODS)
    pinner = Pinner(
        pods,
        Cgroups(cgroup_root),
        partial(machine.order, SYSTEM_ROOT),
        schedulers=names.schedulers(configured.scheduler_name),
        metrics=metrics.agent,
    )
    async with KubeClient.open(
        configured.kubernetes.kubeconfig,
        user_agent=f"slurm-bridge-agent/{__version__}",
        connections=_CONNECTIONS,
        on_call=metrics.kube.call,
    ) as kube:
        reflector = Reflector(
            kube,
            pods,
            field_selector=f"spec.nodeName={node}",
            label_selector=f"{names.BRIDGED_LABEL}=true",
            jitter=random.Random().random,  # noqa: S311  # spreads retries, nothing secret
        )
        state.register("pods", reflector.check)
        state.register("cpusets", pinner.check)

        async def serve_health(stop: asyncio.Event) -> None:
            await health.run(state, metrics, bind(configured.health.listen), stop=stop)

        await lifetime.run_parts(
            Service(name="health", run=serve_health),
            Service(name="pods", run=reflector.run),
            Service(name="pinner", run=pinner.run),
            stop=stop,
        )


if __name__ == "__main__":
    sys.exit(main())
