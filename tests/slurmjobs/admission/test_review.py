"""What a SlurmJob is refused for at CREATE, and what is written on it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.domain.admission.review import Verdict
from bridge.domain.request.rules import Choice, Patterns, Policy, Range, Requester, Rule
from slurmjobs.admission import review
from slurmjobs.objects import slurmjob
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.script.options import BY_FIELD
from slurmruntime.values import faults, names
from slurmruntime.values.faults import LONGEST_TEXT, MOST_FAULTS

ALICE = Requester(user="alice", groups=("physics",))
NOW = datetime(2026, 11, 23, tzinfo=UTC)
SCRIPT = "#!/bin/sh\n#SBATCH --time=5\nsrun hostname\n"


def rule(name: str = "lab", **fields: Any) -> Rule:
    kinds = frozenset({"Pod", "SlurmJob"})
    known: dict[str, Any] = {"source": f"policy rule {name}", "user": "{user}", "kinds": kinds}
    return Rule(name=name, **known | fields)


def policy(*rules: Rule) -> Policy:
    return Policy(rules=rules or (rule(),))


def job(
    script: str | None = SCRIPT, *, annotations: dict[str, str] | None = None, **spec: Any
) -> SlurmJobObject:
    metadata = {"name": "train", "namespace": "lab", "annotations": annotations or {}}
    fields = {**spec, **({} if script is None else {"script": script})}
    return slurmjob.OURS.read(json.dumps({"metadata": metadata, "spec": fields}).encode())


_PIECES = (
    "#!/bin/sh\n",
    "#SBATCH ",
    "--mem=",
    "4Q",
    " ",
    "\n",
    "'",
    '"',
    "\\",
    "--",
    "\0",
    "-N",
    "é",
)


def told_of(verdict: Verdict) -> str:
    return faults.one_line(verdict.faults)


def validated(new: SlurmJobObject, *rules: Rule, by: Requester = ALICE) -> Verdict:
    return review.validate(new, by, policy(*rules), NOW)


def told(new: SlurmJobObject, *rules: Rule, by: Requester = ALICE) -> str:
    return "\n".join(fault.text for fault in validated(new, *rules, by=by).faults)


def test_an_ordinary_script_is_accepted() -> None:
    assert Verdict() == validated(job())


def test_who_creates_it_is_written_over_what_the_author_wrote() -> None:
    forged = {names.REQUESTER_ANNOTATION: "bob", names.RULES_ANNOTATION: "all", "own": "x"}
    written = {
        names.REQUESTER_ANNOTATION.replace("/", "~1"): "alice",
        names.RULES_ANNOTATION.replace("/", "~1"): "lab",
    }
    patch = review.mutate(job(annotations=forged).metadata, ALICE, policy()).patch

    assert [
        {"op": "add", "path": f"/metadata/annotations/{key}", "value": value}
        for key, value in written.items()
    ] == [*patch]
    ours = {names.REQUESTER_ANNOTATION: "alice", names.RULES_ANNOTATION: "lab"}
    assert () == review.mutate(job(annotations=ours).metadata, ALICE, policy()).patch


def test_another_webhook_cannot_change_who_created_it() -> None:
    forged = {names.REQUESTER_ANNOTATION: "bob"}

    assert "expected 'alice', as slurm-bridge wrote it" in told(job(annotations=forged))


def test_all_faults_come_at_once_with_their_places() -> None:
    script = "#!/bin/sh\n#SBATCH --mem=4Q\n#SBATCH --cpu-per-task=2\nx\n"
    said = told(job(script, options={"time": "soon", "partitoin": "gpu"}))

    assert len(_STARTS) == len(said.splitlines()), said
    for start, line in zip(_STARTS, said.splitlines(), strict=True):
        assert line.startswith(start)


_STARTS = (
    "spec.script: line 2: --mem=4Q: it is not an amount of memory",
    "spec.script: line 3: sbatch has no option --cpu-per-task; did you mean --cpus-per-task?",
    "spec.options.time: --time=soon: it is not a duration",
    "spec.options.partitoin: sbatch has no such option",
)


def test_what_sbatch_takes_silently_is_warned_about() -> None:
    verdict = validated(job(SCRIPT + "#SBATCH --mem=1G\n"))

    assert verdict.is_allowed
    assert (
        "spec.script: line 4: this directive comes after the first command" in (verdict.warnings[0])
    )


@pytest.mark.parametrize(
    ("header", "fields", "said"),
    [
        ("--account=chemistry", {}, "spec.script: line 2: refused: users may not set it"),
        ("--qos=high", {}, "line 2: refused: users may not set it"),
        ("--reservation=night", {}, "line 2: refused: users may not set it"),
        ("--priority=TOP", {}, "line 2: refused: users may not set it"),
        ("--nice=-5", {"nice": Range(least=0, most=9)}, "line 2: expected 0 to 9"),
        ("--time=120", {"time_limit_max_min": 60}, "line 2: expected at most 60 minutes"),
        ("--time=UNLIMITED", {"time_limit_max_min": 60}, "expected at most 60 minutes"),
        ("--exclusive", {"exclusive": False}, "line 2: refused: nodes are shared"),
        ("--exclusive=user", {"exclusive": False}, "line 2: refused: nodes are shared"),
        ("--constraint=a100", {"node_choice": False}, "line 2: refused: users may not choose"),
        ("--nodelist=n1", {"node_choice": False}, "line 2: refused: users may not choose nodes"),
        ("--exclude=n1", {"node_choice": False}, "line 2: refused: users may not choose nodes"),
        ("--prefer=a100", {"node_choice": False}, "line 2: refused: users may not choose nodes"),
        ("--licenses=matlab", {"licenses": Patterns()}, "line 2: refused: users may not set it"),
        (
            "--tres-per-task=license/matlab=2",
            {"licenses": Patterns()},
            "line 2: refused: users may not set it",
        ),
        ("--resources=matlab", {"licenses": Patterns()}, "line 2: refused: users may not set it"),
        ("--reboot", {}, "line 2: --reboot is not allowed"),
        ("--requeue=expedite", {}, "line 2: --requeue=expedite is not allowed"),
        ("--uid=0", {}, "line 2: --uid is not supported: slurm-bridge's policy"),
    ],
)
def test_an_option_is_refused_where_it_stands(
    header: str, fields: dict[str, Any], said: str
) -> None:
    script = f"#!/bin/sh\n#SBATCH {header}\nx\n"

    assert said in told(job(script), rule(**fields))


def test_the_field_that_is_stronger_is_the_one_at_fault() -> None:
    script = "#!/bin/sh\n#SBATCH --account=physics\nx\n"
    ours = rule(account=Choice(default="physics"))

    assert not told(job(script), ours)
    assert told(job(script, options={"account": "other"}), ours).startswith(
        "spec.options.account: expected physics"
    )


@pytest.mark.parametrize("user", ["root", "0", "00", "0x0"])
def test_nobody_becomes_root(user: str) -> None:
    assert f"makes '{user}' the Slurm user" in told(job(), rule(user=user))


def test_a_user_called_root_does_not_become_root() -> None:
    assert "makes 'root' the Slurm user" in told(job(), by=Requester(user="root"))


def test_rules_are_for_pods_unless_they_say_otherwise() -> None:
    pods_only = rule(kinds=frozenset({"Pod"}))

    assert "no policy rule is for SlurmJobs" in told(job(), pods_only)
    elsewhere = rule("other", namespaces=Patterns(["other"]))
    assert "no policy rule allows user 'alice' to have SlurmJobs in namespace lab" in told(
        job(), pods_only, elsewhere
    )
    assert not told(job(), pods_only, rule("jobs"))


def test_a_script_that_stands_elsewhere_is_looked_at_later() -> None:
    key = {"configMapKeyRef": {"name": "scripts", "key": "train.sh"}}

    assert not told(job(None, scriptFrom=key))
    assert "spec.options.mem" in told(job(None, scriptFrom=key, options={"mem": "4Q"}))


@settings(max_examples=200, deadline=None)
@given(
    script=st.text(min_size=1, max_size=300)
    | st.lists(st.sampled_from(_PIECES), min_size=1).map("".join),
    options=st.dictionaries(
        st.sampled_from([*BY_FIELD]), st.text(max_size=20) | st.integers() | st.booleans()
    ),
)
def test_whatever_is_sent_gets_an_answer_of_bounded_length(
    script: str, options: dict[str, Any]
) -> None:
    verdict = validated(job(script, options=options))

    assert len(told_of(verdict).encode()) <= LONGEST_TEXT
    assert len(verdict.warnings) <= MOST_FAULTS


def test_an_administrators_answer_cannot_be_written_beforehand() -> None:
    said = told(job(annotations={names.WHEN_LOST_ANNOTATION: "restore"}))

    assert said.startswith(f"metadata.annotations[{names.WHEN_LOST_ANNOTATION}]: leave it out")


def test_no_job_waits_for_itself() -> None:
    assert "spec.dependsOn[1].slurmJob: a SlurmJob cannot wait for itself" in told(
        job(dependsOn=[{"slurmJob": "prepare"}, {"slurmJob": "train"}])
    )


def test_another_controllers_object_is_its_own_business() -> None:
    theirs = job("#!/bin/sh\n#SBATCH --mem=4Q\n", managedBy="kueue.x-k8s.io/multikueue")

    assert not told(theirs)
    forged = job(
        managedBy="kueue.x-k8s.io/multikueue", annotations={names.REQUESTER_ANNOTATION: "bob"}
    )
    assert told(forged)


def test_everything_that_is_wrong_with_its_results_is_told_at_once() -> None:
    def result(source: str, path: str = "") -> dict[str, Any]:
        return {"from": source, "to": {"claimName": "kept", "path": path}}

    output = {"claimName": "scratch", "clusterPath": "/scratch"}
    wrong = [result("../a"), result("/home/alice/a"), result("a", "b/../c"), result("fine")]
    metadata = {"name": "t" * 250, "namespace": "lab"}
    fields = {"script": SCRIPT, "output": output, "results": wrong}
    found = slurmjob.OURS.read(json.dumps({"metadata": metadata, "spec": fields}).encode())

    told = [str(fault.path) for fault in review.validate(found, ALICE, policy(), NOW).faults]

    expected = ["metadata.name", "spec.results[0].from", "spec.results[1].from"]
    assert [*expected, "spec.results[2].to.path"] == [
        each for each in told if each == "metadata.name" or "results" in each
    ]
    without = review.validate(job(results=[result("a")]), ALICE, policy(), NOW)
    assert "spec.results: results need output" in told_of(without)
