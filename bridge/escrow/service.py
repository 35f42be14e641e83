"""The door as services of a program."""

import asyncio
from functools import partial

import structlog

from bridge.escrow import door, shares
from bridge.escrow.lookout import Lookout
from bridge.escrow.news import News
from bridge.escrow.shares import LastLook
from bridge.escrow.tokens import Tokens
from bridge.reconcile.informers import Mirror
from bridge.reconcile.program import Program
from slurmruntime.process.clock import pause
from slurmruntime.process.lifetime import Service
from slurmruntime.process.serve import bind, serve
from slurmruntime.process.tls import ServerTls, Unusable
from slurmruntime.values.ids import JobId

HOLD_S = 10.0
"""How long a question is open before it is asked again: proxies close silent connections after a minute."""

_GRACE_S = 1
"""Scripts ask again, so nothing is lost when we stop."""

_LOOK_AGAIN_S = 1.0

_WATCHES = ("pods", "pods of the binder", "nodes")
"""What is looked at, by the names of `Mirror`."""

_log = structlog.get_logger(__name__)


def parts(program: Program, mirror: Mirror, news: News) -> tuple[Service, ...]:
    """Return what serves slurmctld's scripts; () if the setting is off.

    Every replica answers. Readiness does not depend on it: pods are placed without.
    """
    escrow = program.settings.escrow
    if not escrow.listen:
        return ()
    tokens = Tokens(escrow.token_file)
    program.health.register("escrow token", tokens.fault, is_needed=False)
    lookout = Lookout(
        program.slurm,
        pods=mirror.pods,
        kube_nodes=mirror.kube_nodes,
        blind=partial(blind, program),
        clock=program.clock,
    )

    async def until_free(job_id: JobId) -> str:
        reason = await lookout.until_free(job_id, within_s=HOLD_S)
        if reason:
            _log.info("escrow.waits", job_id=job_id, reason=reason)
        return reason

    app = door.create(tokens=tokens, until_free=until_free, told=news, metrics=program.metrics)
    sock = bind(escrow.listen)

    async def let_go(stop: asyncio.Event) -> None:
        await stop.wait()
        lookout.close()

    async def answer(stop: asyncio.Event) -> None:
        tls = await _tls(program, stop)
        if tls is None:
            sock.close()
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(tls.run(stop))
            group.create_task(let_go(stop))
            await serve(
                app,
                sock,
                stop=stop,
                tls=tls.context,
                grace_s=_GRACE_S,
                most_connections=door.MOST_CONNECTIONS,
            )

    return (Service(name="escrow news", run=news.run), Service(name="escrow", run=answer))


def last_look(program: Program, mirror: Mirror) -> LastLook:
    """Return what is asked before a pod is bound; it asks nobody if the setting is off."""
    if not program.settings.escrow.listen:
        return shares.no_look
    return shares.last_look(program.slurm, mirror.kube_nodes)


def blind(program: Program) -> str | None:
    """Return why our pods or nodes may be out of date; None if they are not."""
    faults = program.health.faults()
    return next((why for watch in _WATCHES if (why := faults.get(watch))), None)


async def _tls(program: Program, stop: asyncio.Event) -> ServerTls | None:
    """Wait for the certificate: the controllers' own is signed by their leader. None: told to stop."""
    escrow, told = program.settings.escrow, ""
    while not stop.is_set():
        try:
            return ServerTls(escrow.cert_file, escrow.key_file)
        except Unusable as error:
            if str(error) != told:
                _log.warning("escrow.no_certificate", error=str(error))
            told = str(error)
        await pause(_LOOK_AGAIN_S, stop)
    return None
