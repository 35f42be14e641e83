"""A rule's input: a pod, what Slurm surely knows of its placeholder, and the settings."""

from dataclasses import dataclass
from datetime import timedelta

from bridge.domain.lifecycle.decision import Deadlines, Facts
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from slurmruntime.values import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A pod for which Slurm surely has no placeholder."""

    facts: Facts
    policy: Deadlines

    @property
    def pod(self) -> Pod:
        """The pod in question."""
        return self.facts.pod

    @property
    def reported(self) -> str:
        """The reason that the pod shows for waiting; "" if it shows none."""
        condition = self.pod.condition(names.ALLOCATED_CONDITION)
        return condition.reason if condition is not None else ""

    @property
    def dwelt(self) -> timedelta:
        """How long the pod has been seen in this cell."""
        return self.facts.now - (self.facts.since or self.facts.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCase(Case):
    """A pod and its one placeholder: live, or the one whose end counts."""

    job: SlurmJob
