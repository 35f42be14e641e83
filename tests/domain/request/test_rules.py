"""Which rule of the policy holds for whom."""

from typing import Any

import pytest

from bridge.domain.request.rules import POD, SLURM_JOB, Patterns, Policy, Requester, Rule

ALICE = Requester(user="alice@example.org", groups=("physics", "staff"))
BUILDER = Requester(user="system:serviceaccount:ci:builder", groups=("system:serviceaccounts",))


def rule(name: str = "r", **fields: Any) -> Rule:
    """Lists become patterns."""
    patterns = {
        key: Patterns(value) if isinstance(value, list) else value for key, value in fields.items()
    }
    known: dict[str, Any] = {"name": name, "source": f"policy rule {name}", "user": "u"}
    return Rule(**known | patterns)


@pytest.mark.parametrize(
    ("patterns", "name", "expected"),
    [
        (["alice"], "alice", True),
        (["alice"], "Alice", False),
        (["alice"], "alice2", False),
        (["team-*"], "team-", True),
        (["team-*"], "team-a", True),
        (["team-*"], "a-team-a", False),
        (["t?"], "ta", True),
        (["t?"], "t", False),
        (["a.c"], "abc", False),
        (["a|b*"], "a", False),
        (["[a-z]"], "a", False),
        (["(*"], "(x", True),
        (["*"], "two\nlines", True),
        (["*"], "", True),
        (["x", "y*"], "yes", True),
        ([], "x", False),
    ],
)
def test_only_stars_and_question_marks_match_anything(
    patterns: list[str], name: str, *, expected: bool
) -> None:
    assert expected == Patterns(patterns).match(name)


@pytest.mark.parametrize(
    ("fields", "requester", "expected"),
    [
        pytest.param({}, ALICE, True, id="everybody"),
        pytest.param({"users": ["*@example.org"]}, ALICE, True, id="user"),
        pytest.param({"users": ["bob"]}, ALICE, False, id="another user"),
        pytest.param({"groups": ["phys*"]}, ALICE, True, id="group"),
        pytest.param({"groups": ["chemistry"]}, ALICE, False, id="another group"),
        pytest.param(
            {"users": ["bob"], "groups": ["staff"]}, ALICE, True, id="one of both is enough"
        ),
        pytest.param(
            {"users": ["system:serviceaccount:ci:*"]}, BUILDER, True, id="service account"
        ),
        pytest.param(
            {"users": ["system:serviceaccount:*:builder"]}, BUILDER, True, id="of any namespace"
        ),
        pytest.param(
            {"users": ["system:serviceaccount:ci:*"]},
            Requester(user="ci/builder"),
            False,
            id="a user may be called like one",
        ),
        pytest.param({"users": ["ci/*"]}, BUILDER, False, id="a service account is no such user"),
        pytest.param({"users": ["*"]}, ALICE, True, id="a star is everybody"),
        pytest.param({"groups": ["*"]}, Requester(user="x"), False, id="unknown groups"),
    ],
)
def test_who_a_rule_is_for(fields: dict[str, Any], requester: Requester, *, expected: bool) -> None:
    assert expected == rule(**fields).is_for(requester)


def names(policy: Policy, requester: Requester, namespace: str = "lab") -> list[str]:
    return [candidate.name for candidate in policy.candidates(requester, namespace)]


def test_the_first_rule_that_matches_holds() -> None:
    policy = Policy(
        rules=(
            rule("elsewhere", namespaces=["other"]),
            rule("bobs", users=["bob"]),
            rule("first", groups=["staff"]),
            rule("second"),
        )
    )

    assert ["first"] == names(policy, ALICE)
    assert ["second"] == names(policy, BUILDER)
    assert [] == names(Policy(rules=(rule(users=["bob"]),)), ALICE)


def test_rules_by_label_stay_candidates_until_one_needs_none() -> None:
    """Who answers at CREATE does not see the namespace's labels."""
    policy = Policy(
        rules=(
            rule("gold", namespace_labels={"tier": "gold"}),
            rule("silver", namespace_labels={"tier": "silver"}, users=["*@example.org"]),
            rule("rest"),
            rule("never"),
        )
    )

    assert ["gold", "silver", "rest"] == names(policy, ALICE)
    assert ["gold", "rest"] == names(policy, BUILDER)
    for labels, expected in (
        ({"tier": "gold"}, "gold"),
        ({"tier": "silver"}, "silver"),
        ({}, "rest"),
    ):
        found = policy.holding(ALICE, "lab", labels, named=names(policy, ALICE))
        assert found is policy.by_name[expected]


ANONYMOUS = Requester(user=ALICE.user)
"""As she is read from her pod: her groups are not written there."""


def test_that_she_was_in_the_group_is_believed() -> None:
    policy = Policy(rules=(rule("staff", groups=["staff"]), rule("rest")))

    assert policy.by_name["staff"] is policy.holding(ANONYMOUS, "lab", {}, named=["staff"])
    assert policy.by_name["rest"] is policy.holding(ANONYMOUS, "lab", {}, named=["rest"])


def test_without_groups_no_wider_rule_is_taken_for_hers() -> None:
    """The first rule may be hers and give less than the second."""
    policy = Policy(rules=(rule("students", groups=["students"]), rule("rest")))

    assert policy.holding(ANONYMOUS, "lab", {}) is None
    assert policy.by_name["rest"] is policy.holding(ALICE, "lab", {})


def test_a_rule_that_has_changed_since_create_holds_as_it_is_now() -> None:
    named = ["hers"]

    for changed in (
        rule("hers", users=["bob"]),
        rule("hers", namespaces=["other"]),
        rule("hers", namespace_labels={"tier": "gold"}),
        rule("another"),
    ):
        assert Policy(rules=(changed,)).holding(ANONYMOUS, "lab", {}, named=named) is None
    same = Policy(rules=(rule("new"), rule("hers", users=[ALICE.user])))
    assert same.by_name["hers"] is same.holding(ANONYMOUS, "lab", {}, named=named)


def test_a_rule_is_for_pods_unless_it_says_otherwise() -> None:
    pods, both = rule("pods"), rule("both", kinds=frozenset({POD, SLURM_JOB}))
    policy = Policy(rules=(pods, both))

    assert (pods,) == policy.candidates(ALICE, "lab")
    assert (both,) == policy.candidates(ALICE, "lab", kind=SLURM_JOB)
    assert both is policy.holding(ALICE, "lab", {}, named=["pods", "both"], kind=SLURM_JOB)
    assert pods is policy.holding(ALICE, "lab", {}, named=["pods", "both"])
    assert policy.holding(ALICE, "lab", {}, named=["pods"], kind=SLURM_JOB) is None
    assert "no policy rule is for SlurmJobs" in Policy(rules=(pods,)).why_no_rule(
        ALICE, "lab", kind=SLURM_JOB
    )


def test_who_is_refused_is_told_what_to_look_at() -> None:
    policy = Policy(rules=(rule("a", users=["bob"]),))

    assert (
        "refused: no policy rule allows user 'alice@example.org' to have Slurm jobs in namespace lab; "
        "ask the administrator of slurm-bridge (policy.rules)"
    ) == policy.why_no_rule(ALICE, "lab")
    assert "an unknown user" in policy.why_no_rule(Requester(), "lab")
    assert (
        "refused: policy rule gone, which admitted this pod, no longer exists; create the pod again"
        == policy.why_no_rule(ALICE, "lab", named=["gone"])
    )
    assert "slurm.user" in Policy(absence="slurm.user is empty").why_no_rule(ALICE, "lab")


def test_controllers_act_for_others_only_where_creators_are_recorded() -> None:
    controllers = Patterns(["system:serviceaccount:kube-system:*-controller"])
    job_controller = Requester(user="system:serviceaccount:kube-system:job-controller")

    assert not Policy(controllers=controllers).acts_for_others(job_controller)
    recording = Policy(creator_annotation="example.org/creator", controllers=controllers)
    assert recording.acts_for_others(job_controller)
    assert not recording.acts_for_others(ALICE)
