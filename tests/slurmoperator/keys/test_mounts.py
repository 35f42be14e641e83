"""Which step of a key a pod has, whoever wrote its volumes."""

from typing import Any

import msgspec
import pytest

from slurmoperator.keys.mounts import MountingSpec, mounted_steps
from slurmoperator.objects.parts import KeyOfObject
from slurmoperator.rendering import pods

KEY = KeyOfObject(name="site-auth-slurm", key="slurm.key")
CONFIG = {"name": "c", "configMap": {"name": "site-config"}}


def steps(*volumes: Any) -> set[int]:
    found = msgspec.json.decode(msgspec.json.encode({"volumes": volumes}), type=MountingSpec)
    return {*mounted_steps(found, KEY)}


@pytest.mark.parametrize("step", [0, 1, 7])
def test_a_pod_of_ours_has_the_step_that_was_asked_for(step: int) -> None:
    jwt = pods.secret_file(KeyOfObject(name="site-auth-jwt", key="jwt.key"), "jwt.key")
    volume = pods.projected("slurm-etc", 0o600, [*pods.slurm_key(KEY, step), jwt])
    assert {step} == steps(CONFIG, volume)


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"secret": {"secretName": "site-auth-slurm"}}, {0}),
        ({"secret": {"secretName": "site-auth-slurm", "items": [{"key": "slurm.key"}]}}, {0}),
        ({"secret": {"secretName": "site-auth-slurm", "items": [{"key": "jwt.key"}]}}, set()),
        ({"projected": {"sources": [{"secret": {"name": "site-auth-slurm"}}]}}, {0}),
        ({"secret": {"secretName": "site-auth-slurm-ring"}}, set()),
        ({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}, set()),
        ({"projected": {"sources": None}}, set()),
        ({"secret": {"secretName": "other", "items": [{"key": "slurm.key.1.jwks"}]}}, set()),
    ],
)
def test_what_others_mount_counts_too(volume: dict[str, Any], expected: set[int]) -> None:
    assert expected == steps({"name": "v", **volume})


def test_a_pod_may_have_several_and_one_without_volumes_has_none() -> None:
    both = [*pods.slurm_key(KEY, 2), *pods.slurm_key(KEY, 3)]
    assert {2, 3} == steps(pods.projected("both", 0o600, both))
    assert set() == {*mounted_steps(MountingSpec(), KEY)}
