"""Whichever write of a Secret or a webhook configuration goes wrong: one CA is made, everybody trusts it, all are signed by it."""

import asyncio
import base64
from datetime import timedelta
from typing import Any

import pytest

from controllers.webhook.certificates import Certificates, CertificateSettings
from slurmruntime.kube.webhooks import WebhookKind
from slurmruntime.process import pki
from slurmruntime.process.metrics import Metrics
from slurmruntime.process.pki import Pair
from tests import virtual_time
from tests.make.apiserver import ApiServer, Manifest
from tests.make.trouble import Fault, Trouble
from tests.virtual_time import VirtualClock

ISSUED = CertificateSettings(
    release="sb",
    namespace="slurm-bridge-system",
    hosts={"webhook": frozenset({"sb.test.svc"}), "scheduler": frozenset()},
    authority_lifetime=timedelta(days=30),
    lifetime=timedelta(days=9),
)


def secret(name: str) -> Manifest:
    """As the chart has made it: empty."""
    metadata = {"namespace": ISSUED.namespace, "name": name, "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def configuration(kind: str) -> Manifest:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": ISSUED.release, "uid": kind},
        "webhooks": [{"name": "pods.slurm-bridge.dev", "clientConfig": {}}],
    }


def signed(trouble: Trouble) -> ApiServer:
    """What the API server has once a leader has had a minute."""

    async def main(clock: VirtualClock) -> ApiServer:
        api = ApiServer(clock, trouble)
        for name in ("sb-ca", *map(ISSUED.secret, ISSUED.hosts)):
            api.create(secret(name))
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            api.create(configuration(kind))
        metrics = Metrics("controllers")
        signing = Certificates(api, ISSUED, clock=clock, metrics=metrics)  # type: ignore[arg-type]  # all that is called
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(signing.run(stop))
            await clock.sleep(60)
            stop.set()
        return api

    return virtual_time.run(main)


def data_of(api: ApiServer, name: str) -> dict[str, bytes]:
    held: dict[str, Any] = api.of("Secret")[name].get("data", {})
    return {key: base64.b64decode(value) for key, value in held.items()}


def check(api: ApiServer, why: str) -> None:
    """Find one CA, published to both kinds of webhooks, trusted by each part, and the signer of each."""
    held = data_of(api, "sb-ca")
    (certificate,) = (value for name, value in held.items() if name.endswith(".crt"))
    (key,) = (value for name, value in held.items() if name.endswith(".key"))
    authority = Pair(certificate=certificate, key=key)
    for kind in WebhookKind:
        (found,) = (each for path, each in api.objects.items() if kind.value in path)
        (webhook,) = found["webhooks"]
        assert certificate == base64.b64decode(webhook["clientConfig"]["caBundle"]), why
    for part in ISSUED.hosts:
        shown = data_of(api, ISSUED.secret(part))
        assert certificate == shown["ca.crt"], why
        pair = Pair(certificate=shown["tls.crt"], key=shown["tls.key"])
        assert pki.read_certificate(pair, (authority,)) is not None, why


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
def test_after_a_write_that_went_wrong_all_is_signed_and_trusted(fault: Fault) -> None:
    smooth = Trouble()
    check(signed(smooth), "undisturbed")
    assert len(smooth.writes) >= 1 + len(WebhookKind) + len(ISSUED.hosts)
    for at, write in enumerate(smooth.writes, start=1):
        check(signed(Trouble(fault, at=at)), f"write {at}, {write}: {fault.value}")
