"""A script in a ConfigMap, which no webhook sees and its author changes after the SlurmJob was admitted."""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from bridge.domain.request.rules import Choice, Patterns, Policy, Rule
from slurmjobs.objects import slurmjob
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.reconcile.dependencies import SlurmDependencies
from slurmjobs.reconcile.preparing import PreparationFailure, Preparer
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import names
from tests.attacks import attack
from tests.slurmjobs.lifecycle.situations import NOW

RULE = Rule(
    name="lab",
    source="policy rule lab",
    user="{user}",
    kinds=frozenset({"SlurmJob"}),
    account=Choice(default="lab"),
    licenses=Patterns(("ansys",)),
)
JOB = {
    "metadata": {
        "name": "train",
        "namespace": "lab",
        "uid": "5b1c",
        "annotations": {names.REQUESTER_ANNOTATION: "mallory", names.RULES_ANNOTATION: "lab"},
    },
    "spec": {"scriptFrom": {"configMapKeyRef": {"name": "scripts", "key": "train.sh"}}},
}


class ConfigMaps:
    """An API server with one ConfigMap."""

    def __init__(self, script: str) -> None:
        self._script = script

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        assert ("GET", "/api/v1/namespaces/lab/configmaps/scripts") == (method, path)
        return json.dumps({"data": {"train.sh": self._script}}).encode()


async def prepared(directive: str) -> Mapping[str, object]:
    """The job that Slurm would be given."""

    async def labels(_namespace: str) -> Mapping[str, str]:
        return {names.ENABLED_LABEL: "true"}

    async def slurm_user() -> frozenset[str]:
        return frozenset({"slurm", "64030"})

    preparer = Preparer(
        cast("KubeClient", ConfigMaps(f"#!/bin/sh\n#SBATCH {directive}\nid\n")),
        policy=lambda: Policy(rules=(RULE,)),
        labels=labels,
        slurm_user=slurm_user,
        now=lambda: NOW,
        resolve=lambda _job: SlurmDependencies(),
        has_collectors=False,
    )
    return await preparer.prepare(job())


def job() -> SlurmJobObject:
    return slurmjob.OURS.read(json.dumps(JOB).encode())


async def test_what_its_rule_allows_is_submitted() -> None:
    fields = await prepared("--tres-per-task=license/ansys:1")

    assert ("mallory", "lab") == (fields["user_id"], fields["account"])


@pytest.mark.parametrize(
    ("directive", "said"),
    [
        attack(
            "an account",
            "once a SlurmJob is admitted, have its ConfigMap ask for another user's account",
            "the script is judged as it is at the submit",
            "--account=physics",
            "line 2: expected lab (policy rule lab), found 'physics'",
        ),
        attack(
            "a reboot",
            "once a SlurmJob is admitted, have its ConfigMap ask for what Slurm lets only operators, as our token is root's: `--reboot`",
            "the script is judged as it is at the submit",
            "--reboot",
            "--reboot is not allowed",
        ),
        attack(
            "first in line",
            "once a SlurmJob is admitted, have its ConfigMap ask for a place before all others by `--requeue=expedite`",
            "the script is judged as it is at the submit",
            "--requeue=expedite",
            "--requeue=expedite is not allowed",
        ),
        attack(
            "a licence",
            "get a licence that the rule refuses by `--tres-per-task`, beside other resources and with a colon, which Slurm takes, too",
            "licences are looked for in all three options that Slurm takes them from",
            "--tres-per-task=cpu=1,license:matlab=1",
            "found 'matlab'",
        ),
    ],
)
async def test_nothing_more_is_submitted(directive: str, said: str) -> None:
    with pytest.raises(PreparationFailure) as failure:
        await prepared(directive)

    assert "PolicyRefused" == failure.value.reason
    assert said in failure.value.text
