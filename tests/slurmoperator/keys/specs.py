"""Objects that name keys."""

import msgspec

from slurmoperator.objects.controller import ControllerSpec

SPEC = {
    "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"},
    "jwtKeyRef": {"name": "slurm-auth-jwt", "key": "jwt.key"},
}


def spec(**changes: object) -> ControllerSpec:
    return msgspec.convert({**SPEC, **changes}, ControllerSpec)
