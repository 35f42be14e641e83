"""Translate the settings into the defaults of a request."""

import math
from collections.abc import Mapping

from bridge.domain.model.claims import profiles
from bridge.domain.model.claims.by_class import Ways
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.request.build import Defaults
from bridge.settings.schema import Settings
from slurmruntime.values import quantities
from slurmruntime.values.ids import ClusterId


def of(settings: Settings, cluster: ClusterId) -> Defaults:
    """Return the values for pods that do not specify their own."""
    return Defaults(
        cluster=cluster,
        mcs_label=settings.slurm.mcs_label,
        default_milli_cpu=math.ceil(settings.placement.default_cpus * quantities.MILLI),
        milli_per_cpu=settings.slurm.milli_cpu_per_cpu,
        gpu_resources=counted_as(settings),
        hybrid=HybridRule(settings.nodes.hybrid),
        devices=ways(settings),
        priority_classes=settings.placement.priority_classes,
        required_limits=settings.placement.required_limits,
        caps=settings.caps.values,
    )


def ways(settings: Settings) -> Ways:
    """Return how pods may ask for devices by resource claims."""
    controllers = settings.controllers
    return Ways(
        takes_claims=bool(controllers.device_profiles), resources=controllers.device_resources
    )


def counted_as(settings: Settings) -> Mapping[str, str]:
    """Return the GRES that extended resources and devices of resource claims count as."""
    controllers = settings.controllers
    claimed = profiles.resources(profiles.read(controllers.device_profiles))
    return {**controllers.gpu_resources, **claimed}
