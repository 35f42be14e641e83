"""What an old manifest is refused for at CREATE, told by its own fields."""

import json
from datetime import UTC, datetime
from typing import Any

from bridge.domain.admission.review import Verdict
from bridge.domain.request.rules import Patterns, Policy, Requester, Rule
from slurmjobs.admission import foreign
from slurmjobs.sylabs.job import KINDS, SylabsKind, SylabsResource
from slurmjobs.sylabs.site import SylabsSite

ALICE = Requester(user="alice", groups=("physics",))
NOW = datetime(2026, 11, 23, tzinfo=UTC)
SITE = SylabsSite(ssh_rules={"vagrant": "lab"})
OLD, WLM, IMAGE = KINDS


def rule(name: str = "lab", **fields: Any) -> Rule:
    return Rule(
        name=name,
        source=f"policy rule {name}",
        user="{user}",
        kinds=frozenset({"SlurmJob"}),
        **fields,
    )


def validated(kind: SylabsKind = OLD, rules: tuple[Rule, ...] = (rule(),), **spec: Any) -> Verdict:
    body = {"metadata": {"name": "cow", "namespace": "lab"}, "spec": spec}
    job = SylabsResource(kind, SITE).read(json.dumps(body).encode())
    return foreign.validate(job, ALICE, Policy(rules=rules), NOW)


def told(verdict: Verdict) -> list[str]:
    return [fault.text for fault in verdict.faults]


def test_an_ordinary_manifest_is_accepted() -> None:
    assert Verdict() == validated(batch="#!/bin/sh\n#SBATCH --nodes=1\nsrun hostname\n")
    assert Verdict() == validated(IMAGE, image="library://sylabsed/examples/lolcow")


def test_faults_of_manifest_script_and_policy_come_at_once_with_their_own_paths() -> None:
    verdict = validated(
        batch="#!/bin/sh\n#SBATCH --mem=4Q\n#SBATCH --account=chemistry\n",
        nodeSelector={"a": True},
        ssh={"user": "carol"},
    )
    starts = (
        "spec.ssh: ",
        "spec.nodeSelector[a]: ",
        "spec.batch: line 2: --mem=4Q: ",
        "spec.batch: line 3: refused: users may not set it",
    )

    assert len(starts) == len(told(verdict))
    for start, text in zip(starts, told(verdict), strict=True):
        assert text.startswith(start)


def test_a_script_without_an_interpreter_is_refused_as_sbatch_refuses_it() -> None:
    assert any(
        text.startswith("spec.batch: line 1: ") for text in told(validated(batch="hostname"))
    )


def test_what_a_field_asks_for_is_told_where_it_stands() -> None:
    capped = rule(time_limit_max_min=60)
    verdict = validated(
        IMAGE, (capped,), image="library://x/y", resources={"wallTime": 7200, "nodes": 1}
    )

    (fault,) = told(verdict)
    assert fault.startswith("spec.resources.wallTime: expected at most 60 minutes")


def test_warnings_name_its_own_fields() -> None:
    verdict = validated(
        batch="#!/bin/sh\n##SBATCH --nodes=1\nsrun x\n#SBATCH --mem=1\n",
        nodeSelector={"gpu": "yes"},
    )

    assert verdict.is_allowed
    assert verdict.warnings[0].startswith("spec.nodeSelector[gpu]: ")
    assert any(text.startswith("spec.batch: line 4: ") for text in verdict.warnings)
    assert not any("spec.script" in text for text in verdict.warnings)


def test_ssh_is_accepted_only_where_its_rule_applies() -> None:
    ssh = {"user": "vagrant"}
    script = "#!/bin/sh\n"
    other = rule("other", namespaces=Patterns(["lab"]))

    assert not validated(batch=script, ssh=ssh).faults
    (fault,) = told(validated(rules=(other, rule()), batch=script, ssh=ssh))
    assert fault.startswith("spec.ssh.user: it requires policy rule lab, which does not apply")
    assert fault.endswith("rules that do: other")
