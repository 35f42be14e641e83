"""`python -m slurmoperator --config FILE`: slurm-operator; wiring only."""

import asyncio
import secrets
import sys
from functools import partial

from bridge.reconcile.program import opened
from bridge.settings import configuration
from bridge.settings.operator import OperatorSection
from bridge.settings.schema import Settings
from slurmoperator.clusters.assembly import SlurmClusters, wait_for
from slurmoperator.daemons.acting import KeySource
from slurmoperator.daemons.assembly import ControlPlane
from slurmoperator.keys import host_keys
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.nodesets.assembly import NodeSets
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey
from slurmoperator.rendering.node_sets.worker import worker_pod
from slurmoperator.rendering.site import ControlSite, NamespaceScope, NetworkSite, SlurmImages
from slurmoperator.rivals import Rivals
from slurmruntime.leading.lease import Accession
from slurmruntime.model.objects import JsonObject
from slurmruntime.process import lifetime
from slurmruntime.process.lifetime import Service


def main() -> int:
    """Run until a signal; return the exit code."""
    settings = configuration.load("slurmoperator", sys.argv[1:], log_name="operator")
    return lifetime.run(partial(run, settings))


async def run(settings: Settings, stop: asyncio.Event) -> None:
    """Control all clusters while this process leads and no other operator serves them, until `stop` is set."""
    site = build_site(settings.operator, settings.kubernetes.namespace)
    async with opened("operator", settings) as program:

        def pod(node_set: NodeSetObject, key: WorkerKey, step: int) -> JsonObject:
            name = node_set.spec.controller_ref.name
            controller = control_plane.controller(node_set.metadata.namespace, name)
            return worker_pod(node_set, key, controller, site, key_step=step)

        def key_step(node_set: NodeSetObject) -> int:
            return control_plane.key_step(
                node_set.metadata.namespace, node_set.spec.controller_ref.name
            )

        rivals = Rivals(program.kube, program.clock, release=settings.kubernetes.namespace)
        program.health.register("other operators", rivals.check)
        node_sets = NodeSets(program, pod, key_step)
        operator = settings.operator
        control_plane = ControlPlane(
            program,
            node_sets.watched,
            site,
            keys=KeySource(random_bytes=secrets.token_bytes, host_keys=host_keys.generate),
            served=NamespaceScope(frozenset(operator.namespaces)),
            tokens=TokenPolicy(users=operator.token_users, longest_s=operator.token_longest_s),
            tried=node_sets.tried,
        )

        clusters = SlurmClusters(program, control_plane.watched, node_sets.watched)

        async def lead(until: asyncio.Event, _accession: Accession) -> None:
            if not await wait_for(rivals.alone, until):
                return
            async with asyncio.TaskGroup() as group:
                group.create_task(control_plane.control(until))
                group.create_task(node_sets.control(until))
                group.create_task(clusters.control(until))

        await lifetime.run_parts(
            program.health_part(),
            program.token_part(),
            Service(name="other operators", run=rivals.run),
            *node_sets.parts(),
            *control_plane.parts(),
            *clusters.parts(),
            program.leader_part(lead),
            stop=stop,
        )


def build_site(operator: OperatorSection, namespace: str) -> ControlSite:
    """Return what all clusters have in common; `namespace` is that of this program."""
    daemons = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "login")
    images = {daemon: operator.image.replace("{daemon}", daemon) for daemon in daemons}
    return ControlSite(
        images=SlurmImages(**images),
        domain=operator.domain,
        network=NetworkSite(operator_namespace=namespace, others=operator.network_peers)
        if operator.network_policies
        else None,
        priority_class=operator.priority_class,
        tls_image=operator.tls_image,
    )


if __name__ == "__main__":
    sys.exit(main())
