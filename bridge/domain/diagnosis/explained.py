"""The report of `explain` on one pod template of a manifest."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateReport:
    """What one pod template of a manifest would become in Slurm."""

    where: str
    """`Job/train spec.template in namespace research`."""
    faults: tuple[str, ...] = ()
    job: dict[str, object] | None = None
    """What would be submitted for one such pod, or for its gang; None if that cannot be determined."""
    components: tuple[dict[str, object], ...] = ()
    """Further components of that job, if a gang's pods differ in size."""
    pods: int = 1
    """The number of pods the job is for."""
    claims: tuple[str, ...] = ()
    """What each request of the pod's resource claims becomes: `gpus/one: 1 of example = gpu:a100`."""
    warnings: tuple[str, ...] = ()
    """What has no effect."""
    rule: str = ""
    """The policy rule that applies to the caller."""
    note: str = ""


def differences(one: TemplateReport) -> Iterator[tuple[str, str]]:
    """Describe each further component by its differences from the first."""
    first = one.job or {}
    for number, component in enumerate(one.components, 2):
        other = (f"{name} {value}" for name, value in component.items() if first.get(name) != value)
        yield f"component {number}", ", ".join(other)
