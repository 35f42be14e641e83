"""`python -m webhook --config FILE`: wiring only."""

import asyncio
import sys
from collections.abc import Iterator
from functools import partial

from bridge.domain.request.build import Defaults
from bridge.settings import configuration, request_defaults, slurm_jobs
from bridge.settings.configuration import Sources
from bridge.settings.policy_file import PolicyFile
from bridge.settings.schema import Settings
from slurmruntime.process import health, lifetime
from slurmruntime.process.clock import Clock, SystemClock
from slurmruntime.process.health import Health
from slurmruntime.process.lifetime import Service
from slurmruntime.process.metrics import Metrics
from slurmruntime.process.serve import bind, serve
from slurmruntime.process.tls import ServerTls
from slurmruntime.values.ids import ClusterId
from webhook import app
from webhook.app import PodReviewer
from webhook.reviewing import Reviewer


def main() -> int:
    """Run until a signal; return the exit code."""
    configured = configuration.load("webhook", sys.argv[1:])
    return lifetime.run(partial(run, configured, configuration.sources("webhook", sys.argv[1:])))


async def run(configured: Settings, sources: Sources, stop: asyncio.Event) -> None:
    """Serve the webhook and its health endpoint until `stop` is set."""
    clock = SystemClock()
    metrics = Metrics("webhook")
    tls = ServerTls(configured.server.cert_file, configured.server.key_file)
    metrics.certificates.watch(lambda: tls.expires_at)
    state = Health()
    state.register("certificate", lambda: tls.fault(clock.now()))
    policy = PolicyFile(sources, configured, metrics)
    pods = PodReviewer(
        lambda: policy.current,
        defaults=_defaults(configured),
        scheduler_name=configured.scheduler_name,
        extender_binds=configured.placement.binder == "extender",
        self_test_namespace=sources.installation.self_test_namespace,
    )
    webhook = app.create(pods, *_slurm_job_reviewers(configured, policy, clock), metrics=metrics)

    async def serve_health(stop: asyncio.Event) -> None:
        await health.run(state, metrics, bind(configured.health.listen), stop=stop)

    async def serve_webhook(stop: asyncio.Event) -> None:
        sock = bind(configured.server.listen)
        await serve(webhook, sock, stop=stop, tls=tls.context)

    await lifetime.run_parts(
        Service(name="health", run=serve_health),
        Service(name="certificates", run=tls.run),
        Service(name="policy", run=policy.run),
        Service(name="webhook", run=serve_webhook),
        stop=stop,
    )


def _slurm_job_reviewers(
    configured: Settings, policy: PolicyFile, clock: Clock
) -> Iterator[Reviewer]:
    if configured.slurm_jobs.enabled:
        from webhook.slurmjobs import SlurmJobReviewer, translated_resources  # noqa: PLC0415  # sbatch's grammar, which pods do not need

        zone = slurm_jobs.zone(configured.slurm_jobs.time_zone)
        yield SlurmJobReviewer(lambda: policy.current, clock, zone)
        if configured.sylabs.enabled:
            for resource in translated_resources(configured.sylabs):
                yield SlurmJobReviewer(lambda: policy.current, clock, zone, resource)


def _defaults(configured: Settings) -> Defaults:
    """Return the settings that a pod alone is checked against; defaults are applied at placement."""
    return Defaults(
        cluster=ClusterId(configured.cluster_id),
        milli_per_cpu=configured.slurm.milli_cpu_per_cpu,
        gpu_resources=configured.controllers.gpu_resources,
        devices=request_defaults.ways(configured),
        required_limits=configured.placement.required_limits,
        caps=configured.caps.values,
    )


if __name__ == "__main__":
    sys.exit(main())
