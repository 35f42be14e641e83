"""People who may create some of slurm-operator's objects, and want what the other objects of their Slurm have."""

import copy
from typing import Any

import pytest

from slurmoperator.configuration import slurm_conf
from slurmoperator.objects.labels import TAKE_OVER_ANNOTATION
from tests.attacks import attack
from tests.make.apiserver import Manifest
from tests.slurmoperator.configuration.given import inputs, node_set
from tests.slurmoperator.daemons.peers import Leaders, part, secret
from tests.virtual_time import VirtualClock, run

SIGNING = secret("site-auth-jwt", jwt_key=b"k" * 64)
RING = secret("site-auth-slurm-ring", slurm_key_1=b"{}", slurm_key_2=b"{}")


def token(name: str, **spec: Any) -> Manifest:
    """A Token that would take whatever it may."""
    made = part("Token", name, **spec)
    made["metadata"]["annotations"] = {TAKE_OVER_ANNOTATION: "true"}
    return made


@pytest.mark.parametrize(
    ("there", "grasping", "wanted"),
    [
        attack(
            "the ring of a key",
            "with the right to create Tokens and none to write Secrets, have the daemons' keys overwritten by a Token whose secretRef names their Secret",
            "a Token writes a Secret of its own only, whatever its annotations say",
            (),
            token("mine", secretRef={"name": "site-auth-slurm-ring", "key": "slurm.key.2"}),
            "site-auth-slurm-ring",
        ),
        attack(
            "another's token",
            "replace another Token's token by a Token whose name and user come to the name of the same Secret",
            "a Token writes a Secret of its own only, whatever its annotations say",
            (part("Token", "ci", secretRef=..., username="jwt-alice"),),
            token("ci-jwt", secretRef=..., username="alice"),
            "ci-jwt-jwt-alice",
        ),
    ],
)
def test_a_token_overwrites_no_secret_of_others(
    there: tuple[Manifest, ...], grasping: Manifest, wanted: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.token_users = {"slurm": "*"}
        for each in (SIGNING, RING, *there):
            leaders.api.put(each)
        await leaders.lead(for_s=60)
        before = copy.deepcopy(leaders.api.of("Secret"))
        assert wanted in before

        leaders.api.put(grasping)
        await leaders.lead(for_s=60)

        assert before == leaders.api.of("Secret")
        name = grasping["metadata"]["name"]
        status, reason, _ = leaders.api.condition("Token", "Accepted", name)
        assert ("False", "NotOurs") == (status, reason)

    run(main)


@pytest.mark.parametrize(
    "config", ["Nodes =ALL", "Nodes = ALL", "Nodes+=ALL", "MaxTime=60 nodes\t=ALL"]
)
@pytest.mark.attack(
    "with the right to create NodeSets and none over the Controller, have one's own partition take the nodes of all others, by `Nodes =ALL` or `Nodes+=ALL` in its line",
    "a partition's line is read as Slurm reads it, and its nodes are always those of its NodeSet",
)
def test_a_partition_takes_no_nodes_of_another_node_set(config: str) -> None:
    mine = node_set("mine", partition={"enabled": True, "config": config})

    said = [fault.message for fault in slurm_conf.faults(inputs(mine, node_set("theirs")))]

    assert ["Nodes is always the NodeSet itself: add another partition to extraConf"] == said
