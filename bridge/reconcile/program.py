"""The base of the programs that speak to both systems: clients, metrics, health, leadership."""

import asyncio
import contextlib
import os
import random
import socket
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from bridge import __version__
from bridge.reconcile.completion import Completer
from bridge.reconcile.loop import WORKERS
from bridge.reconcile.set_aside import SetAside
from bridge.settings.configuration import Installation
from bridge.settings.schema import Settings
from bridge.slurm.complete import ControllerHost, ControllerHosts
from bridge.slurm.respond import Responder
from slurmclient import Tls
from slurmruntime.endpoints import opening
from slurmruntime.endpoints.finding import ControllerName
from slurmruntime.kube import objects
from slurmruntime.kube.client import REQUEST_TIMEOUT_S, KubeClient, OnCall
from slurmruntime.kube.errors import Unavailable
from slurmruntime.kube.kubeconfig.credentials import Credentials
from slurmruntime.kube.leases import KubeLeases
from slurmruntime.leading import lease, several
from slurmruntime.leading.controller import Process
from slurmruntime.leading.lease import LeaseTimes
from slurmruntime.process import health, lifetime, liveness, token_watch
from slurmruntime.process.clock import Clock, SystemClock
from slurmruntime.process.events import EventRecorder, Reporter
from slurmruntime.process.health import Health
from slurmruntime.process.lifetime import Service, StartAfresh
from slurmruntime.process.liveness import Liveness
from slurmruntime.process.metrics import Metrics
from slurmruntime.process.serve import bind
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import backoff
from slurmruntime.values.ids import ClusterId

_CONNECTIONS = 64
_LEASE_CONNECTIONS = 2
"""One for the hanging call, one for the next."""

SLURM_CONNECTIONS = 8
"""Connections to slurmrestd, and jobs that are submitted at once: by default slurmrestd serves 124 connections of all its clients,
and slurmctld takes one submit after the other.
"""
_TO_EACH_SLURM = 2
"""Connections to the Slurm of each Controller object."""
_LONGEST_ANSWER = 16 << 20
"""Bytes in one answer of a Slurm that other people may run. Lists of jobs and nodes, which may be
longer, are read in slices.
"""

_ATTEMPTS = 10
_FIRST_PAUSE = timedelta(seconds=0.5)
_LONGEST_PAUSE = timedelta(seconds=3)
"""Retries take half a minute in all, or longer if requests time out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tempo:
    """How long a leader's lease lasts, and how often its controllers look; in seconds.

    It is the same in every installation. The programs take it as an argument for sandboxes, which are in a hurry.
    """

    lease: LeaseTimes = LeaseTimes()  # noqa: RUF009  # is immutable
    slurm_nodes_s: float = 5.0
    """Between readings of Slurm's nodes while nothing changes: each costs slurmctld a lock."""
    orphans_s: float = 30.0
    """Between searches for placeholders without pods: they are rare, and one is cancelled at the second sight of it."""
    self_test_s: float = 60.0
    """Between tests of the webhook while it works: more than one a minute would be noise in audit logs."""


TEMPO = Tempo()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One process and its resources."""

    name: str
    settings: Settings
    kube: KubeClient
    lease_kube: KubeClient
    """The API server over separate connections: bulk writes must not delay a lease renewal."""
    slurm: SlurmClient
    slurm_tls: Tls
    cluster: ClusterId
    metrics: Metrics
    health: Health
    liveness: Liveness
    clock: Clock
    rng: random.Random
    reporter: Reporter
    set_aside: SetAside
    tempo: Tempo = TEMPO
    installation: Installation = Installation()  # noqa: RUF009  # is immutable

    @property
    def process(self) -> Process:
        """What every controller uses of it."""
        return Process(
            clock=self.clock,
            metrics=self.metrics,
            set_aside=self.set_aside,
            rng=self.rng,
            reporter=self.reporter,
        )

    @property
    def events(self) -> EventRecorder:
        """Records this program's Events."""
        return EventRecorder(kube=self.kube, reporter=self.reporter, clock=self.clock)

    @property
    def controllers(self) -> ControllerHosts:
        """Every slurmctld: `slurm.controller_host`, or the Service of `slurm.controller`."""
        slurm = self.settings.slurm
        hosts = slurm.controller_host
        if slurm.controller and "controller_host" not in slurm.model_fields_set:
            hosts = (ControllerName.parse(slurm.controller).slurmctld_host,)
        return ControllerHosts(
            *(
                ControllerHost(
                    host=host,
                    port=slurm.controller_port,
                    timeout_s=slurm.request_timeout_s,
                    tls=self.slurm_tls if slurm.controller_tls else None,
                )
                for host in hosts
            )
        )

    @property
    def completer(self) -> Completer:
        """Reports outcomes to slurmctld."""
        return Completer(self.slurm, self.controllers, self.clock)

    @property
    def responder(self) -> Responder:
        """Answers for the slurmds of external nodes."""
        return Responder(self.slurm, self.controllers)

    def health_part(self) -> Service:
        """Serve /livez, /readyz and /metrics."""
        sock = bind(self.settings.health.listen)
        return Service(
            name="health",
            run=lambda stop: health.run(
                self.health, self.metrics, sock, stop=stop, stalled=self.liveness.faults
            ),
        )

    def token_part(self) -> Service:
        """Report when the Slurm token expires, and warn well in advance, unless we sign the token ourselves."""
        slurm = self.settings.slurm
        if slurm.controller:
            return Service(name="token", run=_until_stopped)
        self.metrics.slurm.watch_token(lambda: self.slurm.token.expires_at)
        return Service(
            name="token",
            run=lambda stop: token_watch.run(
                self.slurm.token, file=slurm.token_file, clock=self.clock, stop=stop
            ),
        )

    @asynccontextmanager
    async def slurm_of(self, controller: str) -> AsyncIterator[SlurmClient]:
        """Open the client of the Slurm of a Controller object, `namespace/name`; nothing is sent yet.

        Address and key come from its objects, except for `operator.controller`, which is at `slurm.url`.
        """
        if controller == self.settings.operator.controller:
            yield self.slurm
            return
        async with opening.of_controller(
            ControllerName.parse(controller),
            self.kube,
            self.clock,
            connections=_TO_EACH_SLURM,
            timeout_s=self.settings.slurm.request_timeout_s,
            most_bytes=_LONGEST_ANSWER,
            on_call=_sign_of_life(self.metrics.slurm.call),
        ) as slurm:
            yield slurm

    def as_side(self, name: str) -> "Program":
        """Return this process as one of the sides it leads: Events name the side."""
        by = replace(self.reporter, controller=_controller(name))
        return replace(self, name=name, reporter=by)

    def leader_part(self, body: lease.Body, *, sides: Sequence[str] = ()) -> Service:
        """Run a body while this process leads.

        A process leads once. After losing its lease, its caches and pending calls have been
        overtaken by another leader, so it exits and starts afresh instead of leading again.

        Args:
            sides: the sides that the body leads, in the order in which their leases are taken; ():
                this program's own.
        """

        async def lead(stop: asyncio.Event) -> None:
            candidate = lease.Candidate(
                store=KubeLeases(self.lease_kube, self.settings.kubernetes.namespace),
                identity=f"{self.reporter.instance}_{uuid.uuid4()}",
                times=self.tempo.lease,
                clock=self.clock,
                rng=self.rng,
                give_up=lifetime.end_at_once,
            )
            names = [f"slurm-bridge-{side}" for side in sides or (self.name,)]
            has_ended = await several.lead(
                candidate, names, stop=stop, metrics=self.metrics, on_lead=body
            )
            if not has_ended:
                raise StartAfresh(f"{self.name} lost its lease")

        return Service(name="leader", run=lead)


@asynccontextmanager
async def opened(
    name: str,
    settings: Settings,
    tempo: Tempo = TEMPO,
    *,
    sides: int = 1,
    installation: Installation = Installation(),  # noqa: B008  # is immutable
) -> AsyncIterator[Program]:
    """Open the clients of both systems and find out which cluster this is.

    Args:
        sides: how many sides it leads; each gets as many connections as a process of its own.

    Raises:
        KubeError: the API server refused the request or was away for long; Kubernetes will restart
            us.
    """
    metrics = Metrics(name)
    clock = SystemClock()
    credentials = await Credentials.load(settings.kubernetes.kubeconfig)

    def to_kube(connections: int) -> AbstractAsyncContextManager[KubeClient]:
        return KubeClient.open(
            credentials,
            user_agent=f"slurm-bridge-{name}/{__version__}",
            connections=connections,
            on_call=_sign_of_life(metrics.kube.call),
        )

    slurm_tls = Tls(
        ca_file=settings.slurm.ca_file,
        cert_file=settings.slurm.cert_file,
        key_file=settings.slurm.key_file,
    )

    def to_slurm(kube: KubeClient) -> AbstractAsyncContextManager[SlurmClient]:
        slurm = settings.slurm
        connections, on_call = SLURM_CONNECTIONS * sides, _sign_of_life(metrics.slurm.call)
        if slurm.controller:
            return opening.of_controller(
                ControllerName.parse(slurm.controller),
                kube,
                clock,
                connections=connections,
                timeout_s=slurm.request_timeout_s,
                on_call=on_call,
            )
        return SlurmClient.open(
            slurm.url,
            token_file=slurm.token_file,
            tls=slurm_tls,
            connections=connections,
            request_timeout_s=slurm.request_timeout_s,
            on_call=on_call,
        )

    alive = Liveness(clock.monotonic, bound_s=longest_silence_s(settings))
    async with (
        to_kube(_CONNECTIONS * sides) as kube_client,
        to_kube(_LEASE_CONNECTIONS * sides) as lease_kube,
        to_slurm(kube_client) as slurm_client,
    ):
        program = Program(
            name=name,
            settings=settings,
            kube=kube_client,
            lease_kube=lease_kube,
            slurm=slurm_client,
            slurm_tls=slurm_tls,
            cluster=ClusterId(settings.cluster_id or await _uid_of_cluster(kube_client, clock)),
            metrics=metrics,
            health=Health(),
            liveness=alive,
            clock=clock,
            rng=random.Random(),  # noqa: S311  # spreads retries, nothing secret
            reporter=Reporter(
                controller=_controller(name),
                instance=os.environ.get("POD_NAME") or socket.gethostname(),
            ),
            set_aside=SetAside(metrics, clock),
            tempo=tempo,
            installation=installation,
        )
        with liveness.watching(alive):
            yield program


async def _until_stopped(stop: asyncio.Event) -> None:
    await stop.wait()


def _controller(name: str) -> str:
    return f"slurm-bridge.dev/{name}"


def longest_silence_s(settings: Settings) -> float:
    """Return how long a loop may be silent before the process counts as stalled."""
    slurm = settings.slurm
    hosts = max(len(slurm.url), len(slurm.controller_host))
    return liveness.bound_s(
        request_timeout_s=max(REQUEST_TIMEOUT_S, slurm.request_timeout_s * hosts),
        workers=WORKERS,
        connections=SLURM_CONNECTIONS,
    )


def _sign_of_life(count: OnCall) -> OnCall:
    """Count every call that ends, successful or not, as a sign of life."""

    def on_call(operation: str, seconds: float, outcome: str) -> None:
        count(operation, seconds, outcome)
        liveness.turned()

    return on_call


async def _uid_of_cluster(kube: KubeClient, clock: Clock) -> str:
    """Retry while the API server is away: an exit would mean a back-off of up to five minutes."""
    for attempt in range(1, _ATTEMPTS):
        with contextlib.suppress(Unavailable):
            return (await objects.get_namespace(kube, "kube-system")).uid
        pause = backoff.delay(attempt, first=_FIRST_PAUSE, cap=_LONGEST_PAUSE)
        await clock.sleep(pause.total_seconds())
    return (await objects.get_namespace(kube, "kube-system")).uid
