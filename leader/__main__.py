"""`python -m leader --config FILE`: wiring only."""

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING

from bridge.domain.lifecycle.decision import Actor
from bridge.escrow import service as escrow
from bridge.escrow.job_hints import JobHints
from bridge.reconcile.informers import Mirror
from bridge.reconcile.leadership import LeaderReadings
from bridge.reconcile.program import TEMPO, Program, Tempo, opened
from bridge.settings import configuration
from bridge.settings.configuration import Sources
from bridge.settings.policy_file import PolicyFile
from bridge.settings.schema import Settings
from controllers import __main__ as controllers
from extender import __main__ as extender
from slurmruntime.leading.lease import Accession
from slurmruntime.process import lifetime
from slurmruntime.process.lifetime import Service

if TYPE_CHECKING:
    from slurmjobs.reconcile.assembly import SlurmJobs

NAME = "leader"
SIDES = ("extender", "controllers")
"""The programs that it replaces, in the order in which it takes their leases: a replica that waits for
an extender must not block the controllers beside it.
"""


def main(tempo: Tempo = TEMPO) -> int:
    """Run until a signal; return the exit code."""
    configured = configuration.load(NAME, sys.argv[1:])
    sources = configuration.sources(NAME, sys.argv[1:])
    return lifetime.run(partial(run, configured, sources, tempo))


async def run(configured: Settings, sources: Sources, tempo: Tempo, stop: asyncio.Event) -> None:
    """Answer kube-scheduler, and do the work of both programs while this process leads."""
    async with opened(
        NAME, configured, tempo, sides=len(SIDES), installation=sources.installation
    ) as program:
        mirror = Mirror(program.set_aside)
        hints = JobHints(program.slurm, program.clock)
        policy = PolicyFile(sources, configured, program.metrics)
        slurm_jobs = controllers.build_slurm_jobs(program.as_side("controllers"), policy, mirror)
        body = partial(lead, program, mirror, policy, hints=hints, slurm_jobs=slurm_jobs)
        await lifetime.run_parts(
            program.health_part(),
            program.token_part(),
            Service(name="policy", run=policy.run),
            *mirror.parts(program, gives_devices=True),
            *(slurm_jobs.parts() if slurm_jobs else ()),
            *controllers.self_test_services(program),
            *extender.scheduler_services(program, mirror),
            *escrow.parts(program, mirror, hints),
            program.leader_part(body, sides=SIDES),
            stop=stop,
        )


async def lead(
    program: Program,
    mirror: Mirror,
    policy: PolicyFile,
    stop: asyncio.Event,
    accession: Accession,
    *,
    hints: JobHints | None = None,
    slurm_jobs: "SlurmJobs | None" = None,
) -> None:
    """Do the work of both programs' leaders; if one fails, both end."""
    shared = LeaderReadings(
        program, mirror, actors={Actor.EXTENDER, Actor.CONTROLLERS}, batch=slurm_jobs is not None
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(shared.run(stop))
        group.create_task(
            extender.place(
                program.as_side("extender"),
                mirror,
                policy,
                stop,
                accession,
                hints=hints,
                shared=shared,
            )
        )
        group.create_task(
            controllers.lead(
                program.as_side("controllers"),
                mirror,
                stop,
                accession,
                hints=hints,
                slurm_jobs=slurm_jobs,
                shared=shared,
            )
        )


if __name__ == "__main__":
    sys.exit(main())
