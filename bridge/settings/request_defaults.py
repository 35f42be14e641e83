"""The settings as a request is built from them."""

from bridge.domain.ids import ClusterId
from bridge.domain.request.build import Defaults
from bridge.settings.schema import Settings


def of(settings: Settings, cluster: ClusterId) -> Defaults:
    """Say what pods get that do not say otherwise."""
    return Defaults(
        cluster=cluster,
        mcs_label=settings.slurm.mcs_label,
        default_cpus=settings.placement.default_cpus,
        default_memory_mib=settings.placement.default_memory_mib,
        default_time_limit_min=settings.placement.default_time_limit_min,
        gpu_resources=settings.controllers.gpu_resources,
        priority_classes=settings.placement.priority_classes,
    )
