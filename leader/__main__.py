"""`python -m leader --config FILE`: wiring only."""

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING

from bridge.domain.lifecycle.decision import Actor
from bridge.escrow import service as escrow
from bridge.escrow.news import News
from bridge.reconcile.informers import Mirror
from bridge.reconcile.leadership import Common
from bridge.reconcile.program import Program, opened
from bridge.settings import configuration
from bridge.settings.configuration import Sources
from bridge.settings.policy_file import PolicyFile
from bridge.settings.schema import Settings
from controllers import __main__ as controllers
from extender import __main__ as extender
from slurmruntime.leading.lease import Accession
from slurmruntime.process import lifetime, logging
from slurmruntime.process.lifetime import Service

if TYPE_CHECKING:
    from slurmjobs.reconcile.assembly import SlurmJobs

NAME = "leader"
SIDES = ("extender", "controllers")
"""The programs whose work this is, in the order in which it takes their leases. So a replica that
waits for an extender keeps nothing from the controllers beside it.
"""


def main() -> int:
    """Run until a signal; return the exit code."""
    configured = configuration.load(NAME, sys.argv[1:])
    logging.configure(configured.log, NAME)
    return lifetime.run(partial(run, configured, configuration.sources(NAME, sys.argv[1:])))


async def run(configured: Settings, sources: Sources, stop: asyncio.Event) -> None:
    """Answer kube-scheduler, and do both programs' work while this process leads."""
    async with opened(NAME, configured, sides=len(SIDES)) as program:
        mirror = Mirror(program.set_aside)
        news = News(program.slurm, program.clock)
        policy = PolicyFile(sources, configured, program.metrics)
        slurm_jobs = controllers.slurm_jobs_of(program.as_side("controllers"), policy, mirror)
        body = partial(lead, program, mirror, policy, news=news, slurm_jobs=slurm_jobs)
        await lifetime.run_parts(
            program.health_part(),
            program.token_part(),
            Service(name="policy", run=policy.run),
            *mirror.parts(program, gives_devices=True),
            *(slurm_jobs.parts() if slurm_jobs else ()),
            *controllers.self_test_parts(program),
            *extender.answering(program, mirror),
            *escrow.parts(program, mirror, news),
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
    news: News | None = None,
    slurm_jobs: "SlurmJobs | None" = None,
) -> None:
    """Do the work of both programs' leaders; if one of them fails, so does the other."""
    common = Common(
        program,
        mirror,
        actors={Actor.EXTENDER, Actor.CONTROLLERS},
        batch=slurm_jobs is not None,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(common.run(stop))
        group.create_task(
            extender.place(
                program.as_side("extender"),
                mirror,
                policy,
                stop,
                accession,
                news=news,
                common=common,
            )
        )
        group.create_task(
            controllers.lead(
                program.as_side("controllers"),
                mirror,
                stop,
                accession,
                news=news,
                slurm_jobs=slurm_jobs,
                common=common,
            )
        )


if __name__ == "__main__":
    sys.exit(main())
