"""Open a client of the Slurm of a Controller object."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from slurmclient import Tls
from slurmclient.calls.observing import OnCall
from slurmclient.transport.failover import MOST_BYTES, Transport
from slurmruntime.endpoints.finding import ControllerName, ServerList
from slurmruntime.endpoints.objects import ControllerObjects
from slurmruntime.endpoints.signing import TokenSigner
from slurmruntime.endpoints.transport import ControllerTransport
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import Clock
from slurmruntime.slurm.client import SlurmClient


@asynccontextmanager
async def of_controller(
    of: ControllerName,
    kube: KubeClient,
    clock: Clock,
    *,
    connections: int,
    timeout_s: float,
    on_call: OnCall,
    most_bytes: int = MOST_BYTES,
) -> AsyncIterator[SlurmClient]:
    """Open a client, with so many connections to each slurmrestd; nothing need exist before the first call."""
    objects = ControllerObjects(kube)
    token = TokenSigner(partial(objects.signing_key, of), clock)

    def opens(servers: ServerList) -> Transport:
        return Transport(
            servers.urls,
            token,
            Tls(ca_data=servers.trusted),
            connections=connections,
            timeout_s=timeout_s,
            user_agent="slurm-bridge",
            most_bytes=most_bytes,
        )

    transport = ControllerTransport(partial(objects.servers, of), opens, clock)
    try:
        yield SlurmClient(transport, token=token, connections=connections, on_call=on_call)
    finally:
        await transport.close()
