"""`python -m controllers --config FILE`: wiring only."""

import asyncio
import sys
from datetime import timedelta
from functools import partial
from typing import NoReturn

from bridge.domain.ids import SlurmNode
from bridge.domain.lifecycle.actions import Resize, Submit
from bridge.domain.lifecycle.breaker import Limits
from bridge.domain.lifecycle.decision import Deadlines
from bridge.domain.model.pods import Pod
from bridge.domain.nodes import registration
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.spec import Publishing
from bridge.domain.observation.binding import Bindings
from bridge.leading.lease import Accession
from bridge.leading.workqueue import WorkQueue
from bridge.process import lifetime, logging
from bridge.process.lifetime import Service
from bridge.reconcile.informers import Mirror
from bridge.reconcile.leadership import Leadership
from bridge.reconcile.nodes import KubeNodes
from bridge.reconcile.program import Program, opened
from bridge.settings import configuration
from bridge.settings.schema import Settings
from controllers.nodes.controller import NodeController
from controllers.nodes.fillers import Fillers
from controllers.nodes.holds import Holdings
from controllers.nodes.naming import naming
from controllers.pods.breaker import Breaker
from controllers.pods.evidence import Inquiry
from controllers.pods.orphans import Orphans
from controllers.pods.restoring import Restorer
from controllers.pods.side import Endings, wake_with_nodes, watch_bindings
from controllers.webhook.certificates import Certificates, Issued
from controllers.webhook.selftest import SelfTest


def main() -> int:
    """Run until a signal; return the exit code."""
    configured = configuration.load("controllers", sys.argv[1:])
    logging.configure(configured.log, "controllers")
    return lifetime.run(partial(run, configured))


async def run(configured: Settings, stop: asyncio.Event) -> None:
    """Run the controllers while this process leads, until told to stop."""
    async with opened("controllers", configured) as program:
        mirror = Mirror(program.set_aside)
        await lifetime.run_parts(
            program.health_part(),
            program.token_part(),
            *mirror.parts(program),
            *self_test_parts(program),
            program.leader_part(partial(lead, program, mirror)),
            stop=stop,
        )


def self_test_parts(program: Program) -> tuple[Service, ...]:
    """Test the webhook in every replica; readiness depends on the result."""
    controllers = program.settings.controllers
    if not controllers.self_test_namespace:
        return ()
    test = SelfTest(
        program.kube,
        namespace=controllers.self_test_namespace,
        interval_s=controllers.self_test_interval_s,
        metrics=program.metrics,
    )
    program.health.register("webhook", test.fault)
    return (Service(name="self-test", run=test.run),)


async def lead(program: Program, mirror: Mirror, stop: asyncio.Event, accession: Accession) -> None:
    """Do a leader's work while this process leads; certificates do not wait for anything else."""
    async with asyncio.TaskGroup() as group:
        if signing := certificates_of(program):
            group.create_task(signing.run(stop))
        group.create_task(control(program, mirror, stop, accession))


async def control(
    program: Program, mirror: Mirror, stop: asyncio.Event, _accession: Accession
) -> None:
    """Run the controllers while this process leads."""
    await mirror.synced()
    placement, controllers = program.settings.placement, program.settings.controllers
    poll_s = controllers.poll_interval_s
    term = Leadership(program, mirror, busy_s=poll_s, idle_s=poll_s, submits=False)
    policy = Deadlines(
        bind_deadline=timedelta(seconds=placement.bind_deadline_s),
        start_deadline=timedelta(seconds=controllers.start_deadline_s),
        kept_slots_deadline=None
        if controllers.kept_slots_deadline_s is None
        else timedelta(seconds=controllers.kept_slots_deadline_s),
        restore_deadline=timedelta(seconds=controllers.restore_deadline_s),
        overtime=timedelta(minutes=program.settings.slurm.over_time_limit_min),
        evict_suspended=controllers.suspended == "evict",
        tell_after=timedelta(seconds=placement.tell_after_s),
        poll_interval=timedelta(seconds=poll_s),
        caps=program.settings.caps.values,
    )
    breaker = Breaker(
        Limits(share=controllers.eviction_share, always=controllers.eviction_always),
        pods=mirror.pods,
        placeholders=term.placeholders,
        kube=program.kube,
        namespace=program.settings.kubernetes.namespace,
        clock=program.clock,
        metrics=program.metrics,
    )
    program.health.register("evictions", breaker.health)
    inquiry = Inquiry(program.slurm, clock=program.clock, wake=term.wake)
    restorer = Restorer(
        program.slurm,
        discovery=term.discovery,
        placeholders=term.placeholders,
        pods=mirror.pods,
        kube_nodes=mirror.kube_nodes,
        inquiry=inquiry,
        clock=program.clock,
    )
    nodes = NodeController(
        kube=program.kube,
        slurm=program.slurm,
        kube_nodes=mirror.kube_nodes,
        pods=mirror.pods,
        bound=mirror.bound,
        queue=WorkQueue[SlurmNode](rng=program.rng),
        naming=partial(naming, program.slurm, term.placeholders),
        settings=registration_settings(program),
        holdings=Holdings(mirror.pods, term.placeholders, inquiry, restorer),
        interval_s=controllers.node_interval_s,
        reporter=program.reporter,
        clock=program.clock,
        metrics=program.metrics,
        set_aside=program.set_aside,
    )
    bindings = Bindings()
    watch_bindings(mirror, bindings, program.clock)
    side = Endings(
        KubeNodes(mirror.kube_nodes),
        placeholders=term.placeholders,
        bindings=bindings,
        clock=program.clock,
        breaker=breaker,
        inquiry=inquiry,
        restorer=restorer,
        look_at=nodes.look_at,
    )
    wake_with_nodes(mirror, term.wake)
    endings = term.loop(
        side, policy, submit=place_nothing, resize=place_nothing, restore=restorer.restore
    )
    orphans = Orphans(
        kube=program.kube,
        slurm=program.slurm,
        cluster=program.cluster,
        namespace=program.settings.kubernetes.namespace,
        pods=mirror.pods,
        placeholders=term.placeholders,
        interval_s=controllers.orphan_interval_s,
        clock=program.clock,
        metrics=program.metrics,
    )
    program.health.register("orphans", orphans.health)
    fillers = Fillers(
        slurm=program.slurm,
        cluster=program.cluster,
        kube_nodes=mirror.kube_nodes,
        bound=mirror.bound,
        placeholders=term.placeholders,
        slurm_node=nodes.slurm_node,
        quiet_s=placement.quiet_period_s,
        clock=program.clock,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(fillers.run(stop))
        group.create_task(term.run(endings, stop, workers=controllers.workers))
        group.create_task(inquiry.run(stop))
        group.create_task(nodes.run(stop))
        group.create_task(orphans.run(stop))
        group.create_task(breaker.run(stop))


def certificates_of(program: Program) -> Certificates | None:
    """Return the signer of our own certificates; None if something else signs them."""
    configured = program.settings.certificates
    if not configured.release:
        return None
    issued = Issued(
        release=configured.release,
        namespace=program.settings.kubernetes.namespace,
        hosts={part: frozenset(hosts) for part, hosts in configured.hosts.items()},
        authority_lifetime=timedelta(seconds=configured.authority_lifetime_s),
        lifetime=timedelta(seconds=configured.lifetime_s),
    )
    return Certificates(program.kube, issued, clock=program.clock, metrics=program.metrics)


async def place_nothing(pod: Pod, _action: Submit | Resize) -> NoReturn:
    """Refuse: the lifecycle's rows of placed pods have no Submit and no Resize.

    Raises:
        AssertionError: always.
    """
    raise AssertionError(f"the controllers were asked to place {pod.full_name}")


def registration_settings(program: Program) -> registration.NodeSettings:
    """Return how the administrator wants nodes to appear in Slurm."""
    controllers = program.settings.controllers
    return registration.NodeSettings(
        publishing=Publishing(
            cluster=program.cluster,
            node_features=controllers.node_features,
            gpu_resources=controllers.gpu_resources,
            gpu_type_labels=controllers.gpu_type_labels,
        ),
        policy=node_state.NodeRules(
            drain_conditions=frozenset(controllers.drain_conditions),
            cordons=controllers.cordon_drained_nodes,
            device_patience=timedelta(seconds=controllers.device_patience_s),
        ),
        scheduler_name=program.settings.scheduler_name,
        taint_effect=controllers.taint_effect,
    )


if __name__ == "__main__":
    sys.exit(main())
