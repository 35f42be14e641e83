"""What a controller uses of its process, with retries that are the same in every run."""

import random

from bridge.reconcile.set_aside import SetAside
from slurmruntime.leading.controller import Process
from slurmruntime.process.clock import Clock
from slurmruntime.process.events import Reporter
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.oddities import Oddities


def process(clock: Clock, metrics: Metrics, set_aside: Oddities | None = None) -> Process:
    """A process with this clock; without a place to set keys aside, it gets one of its own."""
    return Process(
        clock=clock,
        metrics=metrics,
        set_aside=set_aside if set_aside is not None else SetAside(metrics, clock),
        rng=random.Random(1),  # noqa: S311  # jitter
        reporter=Reporter(controller="test", instance="test"),
    )
