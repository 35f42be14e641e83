"""The endpoint for slurmctld's scripts as services of a program."""

import asyncio
from functools import partial

import structlog

from bridge.domain.model.hybrid import HybridRule
from bridge.escrow import endpoint, shares
from bridge.escrow.job_hints import JobHints
from bridge.escrow.launch_gate import LaunchGate
from bridge.escrow.questions import Questions
from bridge.escrow.shares import LastCheck
from bridge.escrow.tokens import Tokens
from bridge.reconcile.informers import Mirror
from bridge.reconcile.program import Program
from slurmruntime.process.clock import pause
from slurmruntime.process.lifetime import Service
from slurmruntime.process.serve import bind, serve
from slurmruntime.process.tls import ServerTls, Unusable
from slurmruntime.values.ids import JobId

HOLD_S = 10.0
"""How long a request stays open before the script has to repeat it: proxies close silent connections after a minute."""

_GRACE_S = 1
"""Scripts ask again, so nothing is lost when we stop."""

_TRY_AGAIN_S = 1.0

_WATCHES = ("pods", "pods of the binder", "nodes")
"""The watches it depends on, by their names in `Mirror`."""

_log = structlog.get_logger(__name__)


def is_on(program: Program) -> bool:
    """Check whether slurmctld's scripts are to be answered."""
    return HybridRule(program.settings.nodes.hybrid) is HybridRule.ESCROW


def parts(program: Program, mirror: Mirror, hints: JobHints) -> tuple[Service, ...]:
    """Return the services that serve slurmctld's scripts; () if the setting is off.

    Every replica answers. Readiness does not depend on them: pods are placed without.
    """
    escrow = program.settings.escrow
    if not is_on(program):
        return ()
    tokens = Tokens(escrow.token_file)
    program.health.register("escrow token", tokens.fault, is_needed=False)
    gate = LaunchGate(
        program.slurm,
        pods=mirror.pods,
        kube_nodes=mirror.kube_nodes,
        blind=partial(blind, program),
        clock=program.clock,
    )

    async def until_free(job_id: JobId) -> str:
        reason = await gate.until_free(job_id, within_s=HOLD_S)
        if reason:
            _log.info("escrow.waits", job_id=job_id, reason=reason)
        return reason

    app = endpoint.create(
        tokens=tokens,
        until_free=until_free,
        note=Questions.of(program).note,
        hints=hints,
        metrics=program.metrics,
    )
    sock = bind(escrow.listen)

    async def close_gate(stop: asyncio.Event) -> None:
        await stop.wait()
        gate.close()

    async def answer(stop: asyncio.Event) -> None:
        tls = await _tls(program, stop)
        if tls is None:
            sock.close()
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(tls.run(stop))
            group.create_task(close_gate(stop))
            await serve(
                app,
                sock,
                stop=stop,
                tls=tls.context,
                grace_s=_GRACE_S,
                most_connections=endpoint.MOST_CONNECTIONS,
                limits_bodies=False,
            )

    return (Service(name="escrow news", run=hints.run), Service(name="escrow", run=answer))


def last_check(program: Program, mirror: Mirror) -> LastCheck | None:
    """Return the check before a pod is bound; None if native jobs may overlap with pods, or no pod goes where any are."""
    rule = HybridRule(program.settings.nodes.hybrid)
    if rule not in (HybridRule.ESCROW, HybridRule.ALTERNATE):
        return None
    return shares.last_check(program.slurm, mirror.kube_nodes, rule, program.clock)


def blind(program: Program) -> str | None:
    """Return why our pods or nodes may be out of date; None if they are not."""
    faults = program.health.faults()
    return next((why for watch in _WATCHES if (why := faults.get(watch))), None)


async def _tls(program: Program, stop: asyncio.Event) -> ServerTls | None:
    """Wait for the certificate: the controllers' own is signed by their leader. None if `stop` was set before."""
    escrow, reported = program.settings.escrow, ""
    while not stop.is_set():
        try:
            return ServerTls(escrow.cert_file, escrow.key_file)
        except Unusable as error:
            if str(error) != reported:
                _log.warning("escrow.no_certificate", error=str(error))
            reported = str(error)
        await pause(_TRY_AGAIN_S, stop)
    return None
