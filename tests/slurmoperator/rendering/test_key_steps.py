"""A step on the way to another key of the daemons: every pod that has the key names it, and nothing else changes."""

from typing import Any

import msgspec
import pytest

from slurmoperator.keys.mounts import MountingSpec, mounted_steps
from slurmoperator.objects.parts import KeyOfObject
from slurmoperator.rendering.accounting import accounting_bodies
from slurmoperator.rendering.controller import controller_bodies
from slurmoperator.rendering.loginset import login_set_bodies
from slurmoperator.rendering.node_sets.worker import worker_pod
from slurmoperator.rendering.restapi import restapi_bodies
from tests.slurmoperator.examples import SLURM_KEY
from tests.slurmoperator.rendering.given import FILES, PRESENTED, SITE, given, pod

KEY = msgspec.convert(SLURM_KEY, KeyOfObject)
KINDS = ("Controller", "Accounting", "RestApi", "LoginSet", "NodeSet")


def specification(kind: str, step: int) -> dict[str, Any]:
    """The specification of the pods of one kind."""
    found, control = given(kind), given("Controller")
    match kind:
        case "Controller":
            bodies = controller_bodies(found, FILES, SITE, key_step=step)
        case "Accounting":
            bodies = accounting_bodies(found, "password", SITE, key_step=step)
        case "RestApi":
            bodies = restapi_bodies(found, control, FILES, SITE, presented=PRESENTED, key_step=step)
        case "LoginSet":
            bodies = login_set_bodies(found, control, SITE, key_step=step)
        case _:
            return dict(worker_pod(found, 0, control, SITE, key_step=step)["spec"])
    return dict(pod(bodies)["spec"])


def files(spec: dict[str, Any]) -> dict[str, str]:
    """Under which name each Secret's part is mounted, by its own."""
    return {
        item["key"]: item["path"]
        for volume in spec["volumes"]
        for source in volume.get("projected", {}).get("sources", ())
        for item in source.get("secret", {}).get("items", ())
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [1, 3, 12])
def test_pods_of_all_kinds_get_the_step_instead_of_the_first_key(kind: str, step: int) -> None:
    spec, before = specification(kind, step), specification(kind, 0)

    read = msgspec.json.decode(msgspec.json.encode(spec), type=MountingSpec)
    assert {step} == mounted_steps(read, KEY)
    assert "slurm.key" == files(before)["slurm.key"]
    assert "slurm.jwks" == files(spec)[f"slurm.key.{step}.jwks"]
    assert "slurm.key" not in files(spec)
    others = {key: path for key, path in files(before).items() if key != "slurm.key"}
    assert others.items() <= files(spec).items()
    without = [{key: each for key, each in s.items() if key != "volumes"} for s in (spec, before)]
    assert without[0] == without[1]
