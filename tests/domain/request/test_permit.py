"""What a rule makes of a request."""

from dataclasses import replace
from typing import Any

import pytest

from bridge.domain.request import permit
from bridge.domain.request.overrides import Overrides
from bridge.domain.request.permit import Ask, Permit
from bridge.domain.request.rules import Choice, Patterns, Range, Requester, Rule
from slurmruntime.values import names
from slurmruntime.values.faults import Refusal

ALICE = Requester(user="alice@example.org", groups=("staff",))
RULE = Rule(
    name="lab",
    source="policy rule lab",
    user="{namespace}",
    group="people",
    account=Choice(default="{namespace}", allowed=Patterns(["shared-*"])),
    partition=Choice(default="cpu", allowed=Patterns(["gpu"])),
    qos=Choice(default="normal", allowed=Patterns(["long"])),
    reservation=Choice(allowed=Patterns(["course"])),
    priority=None,
    nice=Range(least=0, most=100),
    time_limit_max_min=60,
    exclusive=False,
    node_choice=False,
    licenses=Patterns(["matlab", "ansys@flex"]),
)


def decided(
    rule: Rule = RULE,
    *,
    deadline_s: int | None = None,
    node_choices: tuple[str, ...] = (),
    requester: Requester = ALICE,
    namespace: str = "physics",
    operators: frozenset[str] = frozenset(),
    **asked: Any,
) -> Permit | list[str]:
    ask = Ask(overrides=Overrides(**asked), deadline_s=deadline_s, node_choices=node_choices)
    try:
        return permit.decide(
            rule, ask, requester=requester, namespace=namespace, operators=operators
        )
    except Refusal as refusal:
        return [
            fault.text.replace(f"metadata.annotations[{names.REQUEST_PREFIX}", "[")
            for fault in refusal.faults
        ]


def test_who_asks_for_nothing_gets_the_defaults() -> None:
    assert (
        Permit(
            requester="alice@example.org",
            rule="lab",
            user="physics",
            group="people",
            account="physics",
            partition="cpu",
            qos="normal",
            time_limit_max_min=60,
            working_directory="/home/physics",
        )
        == decided()
    )


def test_what_is_allowed_is_granted() -> None:
    asked: dict[str, Any] = {
        "account": "shared-7",
        "partition": "gpu,cpu",
        "qos": "long",
        "reservation": "course",
        "nice": 100,
    }
    given = decided(
        **asked, time_limit_min=60, licenses="matlab:2,ansys@flex:1", user_id="physics", hold=True
    )

    assert isinstance(given, Permit)
    assert asked == {name: getattr(given, name) for name in asked}


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        pytest.param(
            {"account": "chemistry"},
            "[account]: expected physics, shared-* (policy rule lab), found 'chemistry'",
            id="another's account",
        ),
        pytest.param(
            {"partition": "gpu,big"},
            "[partition]: expected cpu, gpu (policy rule lab), found 'big'",
            id="one partition of several",
        ),
        pytest.param(
            {"qos": "high"},
            "[qos]: expected normal, long (policy rule lab), found 'high'",
            id="QOS",
        ),
        pytest.param(
            {"reservation": "maintenance"},
            "[reservation]: expected course (policy rule lab), found 'maintenance'",
            id="reservation",
        ),
        pytest.param(
            {"priority": 1},
            "[priority]: refused: users may not set it (policy rule lab), found 1",
            id="priority",
        ),
        pytest.param(
            {"nice": -1},
            "[nice]: expected 0 to 100 (policy rule lab), found -1",
            id="negative nice",
        ),
        pytest.param(
            {"nice": 101},
            "[nice]: expected 0 to 100 (policy rule lab), found 101",
            id="too nice",
        ),
        pytest.param(
            {"time_limit_min": 61},
            "[timelimit]: expected at most 60 minutes (policy rule lab), found 61",
            id="time limit",
        ),
        pytest.param(
            {"deadline_s": 3601},
            "spec.activeDeadlineSeconds: expected at most 60 minutes (policy rule lab), found 61",
            id="the pod's own deadline",
        ),
        pytest.param(
            {"exclusive": True},
            "[exclusive]: refused: nodes are shared (policy rule lab)",
            id="whole nodes",
        ),
        pytest.param(
            {"constraints": "a100"},
            "[constraints]: refused: users may not choose nodes (policy rule lab)",
            id="features",
        ),
        pytest.param(
            {"node_choices": ("spec.nodeSelector",)},
            "spec.nodeSelector: refused: users may not choose nodes (policy rule lab)",
            id="nodes",
        ),
        pytest.param(
            {"licenses": "matlab:1,ansys@other:1|x"},
            "[licenses]: expected matlab, ansys@flex (policy rule lab), found 'ansys@other:1,x'",
            id="licences",
        ),
        pytest.param(
            {"user_id": "root"},
            "[user-id]: expected physics (policy rule lab), found 'root'",
            id="another's name",
        ),
        pytest.param(
            {"group_id": "0"},
            "[group-id]: expected people (policy rule lab), found '0'",
            id="another group",
        ),
    ],
)
def test_what_is_not_allowed_is_refused_with_what_would_be(
    asked: dict[str, Any], fault: str
) -> None:
    assert [fault] == decided(**asked)


def test_every_fault_is_told_at_once() -> None:
    found = decided(account="x", qos="x", priority=1, time_limit_min=99, exclusive=True)

    assert isinstance(found, list)
    assert ["[account]", "[qos]", "[priority]", "[timelimit]", "[exclusive]"] == [
        text.split(": ")[0] for text in found
    ]


def test_a_field_without_default_that_nobody_may_set_has_no_accepted_value() -> None:
    rule = replace(RULE, reservation=Choice(), licenses=Patterns())

    assert [
        "[reservation]: refused: users may not set it (policy rule lab), found 'r'",
        "[licenses]: refused: users may not set it (policy rule lab), found 'm:1'",
    ] == decided(rule, reservation="r", licenses="m:1")


@pytest.mark.parametrize(
    ("user", "namespace", "requester", "expected"),
    [
        ("alice", "lab", "x", "alice"),
        ("64101", "lab", "x", "64101"),
        ("k8s-{namespace}", "lab", "x", "k8s-lab"),
        ("{user}", "lab", "alice", "alice"),
        ("{user}.{namespace}", "lab", "alice", "alice.lab"),
    ],
)
def test_the_slurm_user_is_fixed_or_made_from_a_template(
    user: str, namespace: str, requester: str, expected: str
) -> None:
    rule = replace(RULE, user=user, group="{slurm_user}")
    given = decided(rule, namespace=namespace, requester=Requester(user=requester))

    assert isinstance(given, Permit)
    assert (expected, expected) == (given.user, given.group)


@pytest.mark.parametrize("name", ["0", "007", "root", "a b", "a,b", "-x", "", "ü", "x" * 65, "a\n"])
def test_no_template_makes_a_number_or_root_of_a_users_words(name: str) -> None:
    """Anybody may call a namespace 0, and Slurm takes a number for a uid."""
    rule = replace(RULE, user="{user}", account=Choice())

    found = decided(rule, requester=Requester(user=name))

    assert [f"policy: refused: policy rule lab makes {name!r} the Slurm user"] == found


@pytest.mark.parametrize(
    "name", ["root", "ROOT", "slurm", "Slurm", "daemon", "systemd-network", "_chrony", "nobody"]
)
def test_no_template_makes_a_daemons_account_of_a_namespace(name: str) -> None:
    """As SlurmUser's, the job could be given what only operators may give."""
    rule = replace(RULE, user="{user}", account=Choice())

    found = decided(rule, requester=Requester(user=name))

    assert [f"policy: refused: policy rule lab makes {name!r} the Slurm user"] == found


def test_reserved_names_are_the_sites_and_root_always_is_one() -> None:
    rule = replace(RULE, user="{user}", account=Choice(), reserved=Patterns(["hpc-*"]))

    assert isinstance(decided(rule, requester=Requester(user="slurm")), Permit)
    assert not isinstance(decided(rule, requester=Requester(user="hpc-admin")), Permit)
    assert not isinstance(decided(rule, requester=Requester(user="root")), Permit)


@pytest.mark.parametrize("namespace", ["hpcadm", "HPCADM"])
def test_no_template_makes_slurms_own_user(namespace: str) -> None:
    rule = replace(RULE, user="{namespace}", user_table={}, account=Choice())

    assert isinstance(decided(rule, namespace=namespace), Permit)
    assert [f"policy: refused: policy rule lab makes {namespace!r} the Slurm user"] == decided(
        rule, namespace=namespace, operators=frozenset({"hpcadm", "64030"})
    )


@pytest.mark.parametrize(
    "name", ["root", "Root", "0", "00", "+0", "0x0", "hpcadm", "64030", "064030", "0xfa1e"]
)
def test_no_rule_makes_root_or_slurms_own_user_by_name_or_uid(name: str) -> None:
    """Slurm refuses them nothing, so that is a slip even where the administrator wrote it."""
    operators = frozenset({"hpcadm", "64030"})
    told = [f"policy: refused: policy rule lab makes {name!r} the Slurm user"]
    fixed = replace(RULE, user=name, user_table={}, account=Choice())
    looked_up = replace(fixed, user="{user}", user_table={"alice@example.org": name})

    assert told == decided(fixed, operators=operators)
    assert told == decided(looked_up, operators=operators)


def test_an_administrator_may_name_a_reserved_user() -> None:
    given = decided(replace(RULE, user="slurm", group="{slurm_user}"))

    assert isinstance(given, Permit)
    assert ("slurm", "slurm") == (given.user, given.group)


def test_an_administrator_may_write_numbers() -> None:
    rule = replace(RULE, user="{user}", user_table={"alice@example.org": "64101"}, group="100")
    given = decided(rule)

    assert isinstance(given, Permit)
    assert ("64101", "100") == (given.user, given.group)


def test_who_is_not_in_the_table_is_refused() -> None:
    rule = replace(RULE, user="{user}", user_table={"bob": "bob"})

    assert [
        "policy: refused: policy rule lab has no Slurm user for 'alice@example.org'"
    ] == decided(rule)


def test_groups_have_a_table_too() -> None:
    rule = replace(RULE, group="{slurm_user}", group_table={"physics": "phys"})
    given = decided(rule)

    assert isinstance(given, Permit)
    assert "phys" == given.group


def test_braces_in_a_users_name_are_no_template() -> None:
    rule = replace(RULE, user="u", group="g", account=Choice(default="{user}"))

    assert ["policy: refused: policy rule lab makes '{namespace}' the account"] == decided(
        rule, requester=Requester(user="{namespace}")
    )
