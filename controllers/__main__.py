"""`python -m controllers --config FILE`: wiring only."""

import asyncio
import sys
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from bridge.domain.lifecycle.breaker import Limits
from bridge.domain.lifecycle.decision import Actor, Deadlines
from bridge.domain.model.claims import profiles
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.decision import NodeSettings
from bridge.domain.nodes.spec import Publishing
from bridge.domain.observation.binding import Bindings
from bridge.escrow import service as escrow
from bridge.escrow.job_hints import JobHints
from bridge.reconcile.informers import Mirror
from bridge.reconcile.leadership import RUNNING, LeaderReadings, Leadership
from bridge.reconcile.nodes import KubeNodes
from bridge.reconcile.program import TEMPO, Program, Tempo, opened
from bridge.reconcile.side import Side
from bridge.settings import configuration, request_defaults
from bridge.settings.configuration import Sources
from bridge.settings.policy_file import PolicyFile
from bridge.settings.schema import Settings
from controllers.nodes.actuator import NodePeers
from controllers.nodes.controller import NodeController
from controllers.nodes.fillers import Fillers
from controllers.nodes.gathering import Holdings, Slices
from controllers.pods.breaker import Breaker
from controllers.pods.evidence import EvidenceLookup
from controllers.pods.orphans import Orphans
from controllers.pods.restoring import Restorer
from controllers.pods.side import Endings, wake_with_nodes, watch_bindings
from controllers.webhook.certificates import Certificates, CertificateSettings
from controllers.webhook.selftest import SelfTest
from slurmruntime.leading.lease import Accession
from slurmruntime.process import lifetime
from slurmruntime.process.lifetime import Service

if TYPE_CHECKING:
    from slurmjobs.reconcile.assembly import SlurmJobs


def main(tempo: Tempo = TEMPO) -> int:
    """Run until a signal; return the exit code."""
    configured = configuration.load("controllers", sys.argv[1:])
    sources = configuration.sources("controllers", sys.argv[1:])
    return lifetime.run(partial(run, configured, sources, tempo))


async def run(configured: Settings, sources: Sources, tempo: Tempo, stop: asyncio.Event) -> None:
    """Run the controllers while this process leads, until `stop` is set."""
    async with opened(
        "controllers", configured, tempo, installation=sources.installation
    ) as program:
        mirror = Mirror(program.set_aside)
        hints = JobHints(program.slurm, program.clock)
        policy: tuple[Service, ...] = ()
        slurm_jobs = None
        if configured.slurm_jobs.enabled:
            policy_file = PolicyFile(sources, configured, program.metrics)
            policy = (Service(name="policy", run=policy_file.run),)
            slurm_jobs = build_slurm_jobs(program, policy_file, mirror)
        await lifetime.run_parts(
            program.health_part(),
            program.token_part(),
            *mirror.parts(program),
            *policy,
            *(slurm_jobs.parts() if slurm_jobs else ()),
            *self_test_services(program),
            *escrow.parts(program, mirror, hints),
            program.leader_part(partial(lead, program, mirror, hints=hints, slurm_jobs=slurm_jobs)),
            stop=stop,
        )


def build_slurm_jobs(program: Program, policy: PolicyFile, mirror: Mirror) -> "SlurmJobs | None":
    """Build the controllers of SlurmJobs; None if they are disabled."""
    if not program.settings.slurm_jobs.enabled:
        return None
    from slurmjobs.reconcile.assembly import SlurmJobs  # noqa: PLC0415  # 60 ms that most installations do not need

    return SlurmJobs(program, policy, mirror.pods)


def self_test_services(program: Program) -> tuple[Service, ...]:
    """Return the service that tests the webhook, in every replica; readiness depends on the result."""
    namespace = program.installation.self_test_namespace
    if not namespace:
        return ()
    test = SelfTest(
        program.kube,
        namespace=namespace,
        interval_s=program.tempo.self_test_s,
        metrics=program.metrics,
        scheduler_name=program.settings.scheduler_name,
    )
    program.health.register("webhook", test.fault)
    return (Service(name="self-test", run=test.run),)


async def lead(
    program: Program,
    mirror: Mirror,
    stop: asyncio.Event,
    accession: Accession,
    *,
    hints: JobHints | None = None,
    slurm_jobs: "SlurmJobs | None" = None,
    shared: LeaderReadings | None = None,
) -> None:
    """Do a leader's work while this process leads; certificates do not wait for anything else.

    shared: readings shared with the extender, if it also leads that.
    """
    async with asyncio.TaskGroup() as group:
        if signing := build_certificates(program):
            group.create_task(signing.run(stop))
        group.create_task(
            control(
                program, mirror, stop, accession, hints=hints, slurm_jobs=slurm_jobs, shared=shared
            )
        )


async def control(
    program: Program,
    mirror: Mirror,
    stop: asyncio.Event,
    _accession: Accession,
    *,
    hints: JobHints | None = None,
    slurm_jobs: "SlurmJobs | None" = None,
    shared: LeaderReadings | None = None,
) -> None:
    """Run the controllers while this process leads."""
    await mirror.synced()
    term = Leadership(
        program,
        mirror,
        submits=False,
        batch=slurm_jobs is not None,
        shared=shared,
    )
    if hints is not None:
        hints.lead(term.placeholders)
    breaker = build_breaker(term)
    lookup = EvidenceLookup(program.slurm, clock=program.clock, wake=term.wake)
    restorer = build_restorer(term, lookup)
    holdings = Holdings(
        mirror.pods, term.placeholders, breaker=breaker, lookup=lookup, restorer=restorer
    )
    nodes = build_node_controller(term, holdings)
    bindings = Bindings()
    watch_bindings(mirror, bindings, program.clock)
    kube_nodes = KubeNodes(mirror.kube_nodes)
    endings = Endings(
        kube_nodes,
        placeholders=term.placeholders,
        breaker=breaker,
        lookup=lookup,
        restorer=restorer,
        bindings=bindings,
        clock=program.clock,
        enqueue_node=nodes.enqueue,
    )
    wake_with_nodes(mirror, term.wake)
    side = Side(
        actor=Actor.CONTROLLERS,
        deadlines=deadlines(program.settings),
        nodes=kube_nodes,
        facts=endings,
    )
    loop = term.loop(side, restore=restorer.restore)
    async with asyncio.TaskGroup() as group:
        if slurm_jobs is not None:
            group.create_task(slurm_jobs.control(term, stop))
        group.create_task(build_fillers(term, nodes, holdings).run(stop))
        group.create_task(term.run(loop, stop))
        group.create_task(lookup.run(stop))
        group.create_task(nodes.run(stop))
        group.create_task(build_orphans(term).run(stop))
        group.create_task(breaker.run(stop))


def deadlines(settings: Settings) -> Deadlines:
    """Return the deadlines for pods that have their nodes."""
    controllers = settings.controllers
    kept_slots_s = controllers.kept_slots_deadline_s
    return Deadlines(
        bind_deadline=timedelta(seconds=settings.placement.bind_deadline_s),
        start_deadline=timedelta(seconds=controllers.start_deadline_s),
        kept_slots_deadline=None if kept_slots_s is None else timedelta(seconds=kept_slots_s),
        overtime=timedelta(minutes=settings.slurm.over_time_limit_min),
        evict_suspended=controllers.suspended == "evict",
        poll_interval=timedelta(seconds=RUNNING.busy_s),
        caps=settings.caps.values,
    )


def build_breaker(term: Leadership) -> Breaker:
    """Build the circuit breaker: it holds evictions back if too many pods lost their placeholder at once."""
    program, controllers = term.program, term.program.settings.controllers
    breaker = Breaker(
        Limits(always=controllers.eviction_always),
        pods=term.mirror.pods,
        placeholders=term.placeholders,
        kube=program.kube,
        namespace=program.settings.kubernetes.namespace,
        process=program.process,
    )
    program.health.register("evictions", breaker.health)
    return breaker


def build_restorer(term: Leadership, lookup: EvidenceLookup) -> Restorer:
    """Build what submits placeholders again that Slurm has lost."""
    return Restorer(
        term.program.slurm,
        placeholders=term.placeholders,
        pods=term.mirror.pods,
        kube_nodes=term.mirror.kube_nodes,
        lookup=lookup,
        clock=term.program.clock,
    )


def build_node_controller(term: Leadership, holdings: Holdings) -> NodeController:
    """Build what keeps the nodes of both systems in sync."""
    program, mirror = term.program, term.mirror
    device_profiles = profiles.read(program.settings.controllers.device_profiles)
    return NodeController(
        NodePeers(
            kube=program.kube,
            slurm=program.slurm,
            responder=program.responder,
            events=program.events,
        ),
        mirror,
        Slices(mirror.slices, device_profiles),
        placeholders=term.placeholders,
        holdings=holdings,
        settings=node_settings(program),
        interval_s=program.tempo.slurm_nodes_s,
        process=program.process,
    )


def build_orphans(term: Leadership) -> Orphans:
    """Build what cancels placeholders whose pods are gone."""
    program = term.program
    orphans = Orphans(
        kube=program.kube,
        slurm=program.slurm,
        pods=term.mirror.pods,
        placeholders=term.placeholders,
        cluster=program.cluster,
        namespace=program.settings.kubernetes.namespace,
        interval_s=program.tempo.orphans_s,
        process=program.process,
    )
    program.health.register("orphans", orphans.health)
    return orphans


def build_fillers(term: Leadership, nodes: NodeController, holdings: Holdings) -> Fillers:
    """Build what reserves in Slurm the resources of pods that have no job there."""
    program, mirror = term.program, term.mirror
    return Fillers(
        slurm=program.slurm,
        kube_nodes=mirror.kube_nodes,
        bound=mirror.bound,
        holdings=holdings,
        placeholders=term.placeholders,
        book=nodes.book,
        settings=node_settings(program),
        clock=program.clock,
    )


def build_certificates(program: Program) -> Certificates | None:
    """Build the signer of our own certificates; None if something else signs them."""
    installation = program.installation
    if not installation.release:
        return None
    settings = CertificateSettings(
        release=installation.release,
        namespace=program.settings.kubernetes.namespace,
        hosts={part: frozenset(hosts) for part, hosts in installation.hosts.items()},
    )
    return Certificates(program.kube, settings, clock=program.clock, metrics=program.metrics)


def node_settings(program: Program) -> NodeSettings:
    """Return how nodes should appear in Slurm."""
    controllers = program.settings.controllers
    return NodeSettings(
        publishing=Publishing(
            cluster=program.cluster,
            node_features=controllers.node_features,
            gpu_resources=request_defaults.counted_as(program.settings),
            milli_per_cpu=program.settings.slurm.milli_cpu_per_cpu,
            gpu_type_labels=controllers.gpu_type_labels,
        ),
        policy=node_state.NodeRules(
            drain_conditions=frozenset(controllers.drain_conditions),
            hybrid=HybridRule(program.settings.nodes.hybrid),
            cordons=controllers.cordon_drained_nodes,
        ),
        scheduler_name=program.settings.scheduler_name,
        taint_effect=controllers.taint_effect,
    )


if __name__ == "__main__":
    sys.exit(main())
