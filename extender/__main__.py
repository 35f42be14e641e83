"""`python -m extender --config FILE`: wiring only."""

import asyncio
import sys
from datetime import timedelta
from functools import partial

from bridge.domain.lifecycle.decision import Actor, Deadlines
from bridge.domain.model.claims import profiles
from bridge.domain.model.hybrid import HybridRule
from bridge.escrow import service as escrow
from bridge.escrow.job_hints import JobHints
from bridge.escrow.questions import Questions
from bridge.kube.claims.resource_claims import ResourceClaims
from bridge.kube.claims.templates import ClaimTemplates
from bridge.reconcile.informers import Mirror
from bridge.reconcile.leadership import PLACING, LeaderReadings, Leadership
from bridge.reconcile.program import SLURM_CONNECTIONS, TEMPO, Program, Tempo, opened
from bridge.reconcile.scheduler_waker import SchedulerWaker
from bridge.reconcile.side import Side
from bridge.settings import configuration, request_defaults
from bridge.settings.configuration import Sources
from bridge.settings.policy_file import PolicyFile
from bridge.settings.schema import Settings
from bridge.slurm import kick
from extender import app, cpus
from extender.binder import Binder
from extender.claims.asking import ClaimAsker, Templates
from extender.claims.giving import Devices
from extender.claims.known import KnownClaims
from extender.gathering import Gatherer, PolicySource
from extender.nodes import BridgedNodes, Sharing
from extender.owners import Owners
from extender.side import Placement, Workloads
from extender.submitting import Submitter
from slurmruntime.kube.objects import Objects
from slurmruntime.leading.lease import Accession
from slurmruntime.process import apart, lifetime
from slurmruntime.process.lifetime import Service
from slurmruntime.process.serve import bind, serve
from slurmruntime.process.standstill import Standstill
from slurmruntime.process.tls import ServerTls
from slurmruntime.slurm import inspection
from slurmruntime.values import names


def main(tempo: Tempo = TEMPO) -> int:
    """Run until a signal; return the exit code."""
    configured = configuration.load("extender", sys.argv[1:])
    sources = configuration.sources("extender", sys.argv[1:])
    return lifetime.run(partial(run, configured, sources, tempo))


async def run(configured: Settings, sources: Sources, tempo: Tempo, stop: asyncio.Event) -> None:
    """Answer kube-scheduler, and place pods while this process leads, until `stop` is set."""
    async with opened("extender", configured, tempo) as program:
        mirror = Mirror(program.set_aside)
        hints = JobHints(program.slurm, program.clock)
        policy = PolicyFile(sources, configured, program.metrics)
        await lifetime.run_parts(
            program.health_part(),
            program.token_part(),
            Service(name="policy", run=policy.run),
            *mirror.parts(program, gives_devices=True),
            *scheduler_services(program, mirror),
            *escrow.parts(program, mirror, hints),
            program.leader_part(partial(place, program, mirror, policy, hints=hints)),
            stop=stop,
        )


def scheduler_services(program: Program, mirror: Mirror) -> tuple[Service, ...]:
    """Return the services that answer kube-scheduler, in every replica."""
    server, client_ca_file = program.settings.server, program.settings.extender.client_ca_file
    tls = ServerTls(server.cert_file, server.key_file, client_ca_file or None)
    program.metrics.certificates.watch(lambda: tls.expires_at)
    program.health.register("certificate", lambda: tls.fault(program.clock.now()))
    extender = app.create(
        kube=program.kube,
        lookup=mirror.pods.get,
        clock=program.clock,
        metrics=program.metrics,
        last_check=escrow.last_check(program, mirror),
        home=asyncio.get_running_loop(),
    )
    sock = bind(server.listen)
    standstill = Standstill()
    program.metrics.loops.watch_standstill("scheduler", standstill.longest_s)

    async def answer(stop: asyncio.Event) -> None:
        with standstill.measured():
            await serve(extender, sock, stop=stop, tls=tls.context)

    return (
        Service(name="certificates", run=tls.run),
        Service(name="extender", run=partial(apart.run, answer)),
    )


async def place(
    program: Program,
    mirror: Mirror,
    policy_file: PolicyFile,
    stop: asyncio.Event,
    accession: Accession,
    *,
    hints: JobHints | None = None,
    shared: LeaderReadings | None = None,
) -> None:
    """Place pods while this process leads; shared: readings shared with the controllers, if it also leads those."""
    await mirror.synced()
    term = Leadership(
        program,
        mirror,
        submits=True,
        shared=shared,
    )
    if hints is not None:
        hints.lead(term.placeholders)
    questions = Questions.of(program)
    bridged = build_bridged_nodes(term, questions)
    owners = Owners(Objects(program.kube), program.clock, program.events)
    waker = build_waker(term) if program.settings.slurm.kick else None
    if waker:  # jobs end only on the controllers' side, which may run in this process, too
        term.shared.on_completion(waker.completed)
    claims, asker, giver = build_devices(term, bridged)
    submitter = build_submitter(term, policy_file, owners, bridged, devices=asker, waker=waker)
    facts = Placement(
        placeholders=term.placeholders,
        bridged=bridged,
        submitter=submitter,
        accession=accession,
        clock=program.clock,
        wake=term.wake,
        on_freed=waker.freed if waker else None,
    )
    mirror.pods.subscribe(facts.pod_changed)
    side = Side(
        actor=Actor.EXTENDER,
        deadlines=deadlines(program.settings),
        nodes=bridged.by_name,
        facts=facts,
        workloads=Workloads(owners, submitter, term.placeholders),
    )
    loop = term.loop(
        side,
        submitter=submitter,
        devices=giver,
        cpus=partial(cpus.of_pod, program.slurm) if program.settings.agent.pin_cores else None,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(bridged.list_first(stop))
        if escrow.is_on(program):
            group.create_task(questions.run(stop))
        if waker:
            group.create_task(waker.run(stop))
        group.create_task(build_binder(term, bridged, claims).run(stop))
        await term.run(loop, stop)


def build_waker(term: Leadership) -> SchedulerWaker:
    """Build what wakes Slurm's scheduler."""
    program = term.program
    return SchedulerWaker(
        kick=partial(kick.kick, program.slurm, program.controllers),
        defers=partial(inspection.defers, program.slurm),
        discovery=term.discovery,
        waits=lambda: term.placeholders.waits,
        after=term.placeholders.ask,
        clock=program.clock,
    )


def build_binder(term: Leadership, bridged: BridgedNodes, claims: KnownClaims | None) -> Binder:
    """Build the binder; it is always needed, because pods may exist from before the setting was changed."""
    program, mirror = term.program, term.mirror
    return Binder(
        program.kube,
        mirror.pods,
        bridged=bridged,
        placeholders=term.placeholders,
        claims=claims,
        last_check=escrow.last_check(program, mirror),
        scheduler_name=names.binder(program.settings.scheduler_name),
        process=program.process,
    )


def deadlines(settings: Settings) -> Deadlines:
    """Return the deadlines for pods that wait for their nodes."""
    return Deadlines(
        bind_deadline=timedelta(seconds=settings.placement.bind_deadline_s),
        poll_interval=timedelta(seconds=PLACING.busy_s),
        caps=settings.caps.values,
    )


def build_bridged_nodes(term: Leadership, questions: Questions) -> BridgedNodes:
    """Build the view of the nodes of both systems."""
    program = term.program
    return BridgedNodes(
        program.slurm,
        cluster=program.cluster,
        mirror=term.mirror,
        placeholders=term.placeholders,
        gpu_resources=program.settings.controllers.gpu_resources,
        resources=request_defaults.counted_as(program.settings),
        milli_per_cpu=program.settings.slurm.milli_cpu_per_cpu,
        sharing=Sharing(rule=HybridRule(program.settings.nodes.hybrid), questions=questions),
        clock=program.clock,
    )


def build_submitter(
    term: Leadership,
    policy_file: PolicyFile,
    owners: Owners,
    bridged: BridgedNodes,
    *,
    devices: ClaimAsker | None,
    waker: SchedulerWaker | None,
) -> Submitter:
    """Build what submits placeholders, as the current policy allows."""
    program = term.program
    return Submitter(
        program.slurm,
        placeholders=term.placeholders,
        gatherer=Gatherer(
            program.kube,
            policy=PolicySource(policy_file, program.slurm, program.clock),
            owners=owners,
            bridged=bridged,
            devices=devices,
            clock=program.clock,
        ),
        defaults=request_defaults.of(program.settings, program.cluster),
        concurrency=SLURM_CONNECTIONS,
        process=program.process,
        on_submitted=waker.submitted if waker else None,
    )


def build_devices(
    term: Leadership, bridged: BridgedNodes
) -> tuple[KnownClaims, ClaimAsker, Devices] | tuple[None, None, None]:
    """Build what knows resource claims, what reads what they ask for, and what gives them devices.

    All are None without device profiles, because no pod has claims then.
    """
    program, mirror = term.program, term.mirror
    if not program.settings.controllers.device_profiles:
        return None, None, None
    known = KnownClaims(ResourceClaims(program.kube), mirror.claims, mirror.classes)
    read = profiles.read(program.settings.controllers.device_profiles)
    templates = Templates(known, ClaimTemplates(program.kube), read, program.clock)
    asker = ClaimAsker(known, templates, pods=mirror.pods, profiles=read, clock=program.clock)
    giver = Devices(
        known,
        program.slurm,
        slices=mirror.slices,
        kube_nodes=mirror.kube_nodes,
        profiles=read,
        bridged=bridged,
        templates=templates,
        clock=program.clock,
        wake=term.wake,
    )
    return known, asker, giver


if __name__ == "__main__":
    sys.exit(main())
