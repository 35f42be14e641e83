"""Whose job a stored SlurmJob becomes, and what the policy adds to its request."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bridge.domain.request.permit import Permit
from bridge.domain.request.rules import Choice, Patterns, Policy, Rule
from slurmjobs.identity import permission
from slurmjobs.identity.permission import JobProvenance, decide
from slurmjobs.objects import slurmjob
from slurmjobs.request.build import build
from slurmjobs.request.origin import ScriptOrigin
from slurmjobs.script import read
from slurmjobs.sylabs.job import KINDS, SylabsResource
from slurmjobs.sylabs.site import SylabsSite
from slurmruntime.values import names
from slurmruntime.values.faults import Refusal

NOW = datetime(2026, 11, 23, tzinfo=UTC)
SCRIPT = "#!/bin/sh\nsrun hostname\n"
ARGO = "system:serviceaccount:lab:argo"


def policy(*rules: Rule, **fields: Any) -> Policy:
    return Policy(rules=rules or (rule(),), **fields)


def rule(name: str = "lab", **fields: Any) -> Rule:
    known: dict[str, Any] = {
        "source": f"policy rule {name}",
        "user": "{user}",
        "kinds": frozenset({"SlurmJob"}),
    }
    return Rule(name=name, **known | fields)


def decided(
    under: Policy,
    *,
    script: str = SCRIPT,
    provenance: JobProvenance | None = None,
    **annotations: str,
) -> Permit:
    written = {
        names.REQUESTER_ANNOTATION: annotations.get("requester", "alice"),
        names.RULES_ANNOTATION: annotations.get("rules", "lab"),
        **({names.OWNER_ANNOTATION: annotations["owner"]} if "owner" in annotations else {}),
    }
    metadata = {"name": "train", "namespace": "lab", "annotations": written}
    job = slurmjob.OURS.read(
        json.dumps({"metadata": metadata, "spec": {"script": script}}).encode()
    )
    return decide(job, read.script(script).options, provenance or JobProvenance(), under)


def test_the_author_that_was_recorded_decides() -> None:
    granted = decided(policy())

    assert ("alice", "alice", "/home/alice") == (
        granted.user,
        granted.group,
        granted.working_directory,
    )


def test_a_rule_that_no_longer_is_for_slurm_jobs_refuses_them() -> None:
    with pytest.raises(Refusal, match="no policy rule is for SlurmJobs"):
        decided(policy(rule(kinds=frozenset({"Pod"}))))


def test_slurm_user_itself_owns_no_jobs() -> None:
    operators = JobProvenance(operators=frozenset({"slurm", "64030"}))
    with pytest.raises(Refusal, match="makes '64030' the Slurm user"):
        decided(policy(rule(user="64030")), provenance=operators)


def test_the_labels_of_the_namespace_decide_where_rules_ask_for_them() -> None:
    rules = policy(rule("a", namespace_labels={"tier": "x"}, user="team-x"), rule("b"))
    labelled = JobProvenance(namespace_labels={"tier": "x"})

    found = [decided(rules, provenance=where, rules="a,b") for where in (labelled, JobProvenance())]
    assert ["team-x", "alice"] == [each.user for each in found]


def test_a_workflows_jobs_are_its_controllers_whoever_created_it() -> None:
    rules = policy(
        rule(users=Patterns(["carol"])),
        rule("argo", users=Patterns([ARGO]), user="argo"),
        creator_annotation="example.org/created-by",
        controllers=Patterns([ARGO]),
    )

    assert "argo" == decided(rules, requester=ARGO, rules="argo", owner="w1").user


def test_the_request_carries_what_was_granted() -> None:
    ours = rule(
        account=Choice(default="physics"), qos=Choice(default="normal"), time_limit_max_min=60
    )
    permit = decided(policy(ours))
    assert isinstance(permit, Permit)
    origin = ScriptOrigin(directory=permit.working_directory, now=NOW)
    request = build(SCRIPT, name="train", origin=origin).request
    assert request is not None
    body = permission.grant(request, permit).body

    assert ("alice", "alice") == (body["user_id"], body["group_id"])
    assert ("physics", "normal") == (body["account"], body["qos"])
    assert {"set": True, "infinite": False, "number": 60} == body["time_limit"]
    assert "/home/alice" == body["current_working_directory"]
    assert "partition" not in body


def test_a_shorter_limit_of_the_script_stays() -> None:
    script = "#!/bin/sh\n#SBATCH --time=7\nx\n"
    permit = decided(policy(rule(time_limit_max_min=60)), script=script)
    assert isinstance(permit, Permit)
    request = build(script, name="train", origin=ScriptOrigin(directory="/", now=NOW)).request
    assert request is not None

    limit = permission.grant(request, permit).fields["time_limit"]
    assert {"set": True, "infinite": False, "number": 7} == limit


def test_an_old_manifest_runs_under_the_rule_that_its_ssh_user_stands_for_or_not_at_all() -> None:
    """The labels of the namespace decide between two rules that the webhook named."""
    labelled = rule("lab", namespace_labels={"mode": "ssh"})
    under = policy(labelled, rule("other"))
    metadata = {
        "name": "cow",
        "namespace": "lab",
        "annotations": {names.REQUESTER_ANNOTATION: "alice", names.RULES_ANNOTATION: "lab,other"},
    }
    body = {"metadata": metadata, "spec": {"batch": SCRIPT, "ssh": {"user": "vagrant"}}}
    site = SylabsSite(ssh_rules={"vagrant": "lab"})
    job = SylabsResource(KINDS[0], site).read(json.dumps(body).encode())
    options = read.script(SCRIPT).options

    decide(job, options, JobProvenance(namespace_labels={"mode": "ssh"}), under)
    with pytest.raises(Refusal, match="it requires policy rule lab, but rule other applies"):
        decide(job, options, JobProvenance(), under)
