"""What people are told by Events: each change of a condition's reason, once, and what goes on meanwhile only now and then."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.reports import SPACING, changed
from slurmruntime.crd.conditions import ObjectCondition
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, node_set
from tests.virtual_time import EPOCH, VirtualClock, run

CONDITIONS = st.lists(
    st.builds(
        ObjectCondition,
        type=st.sampled_from(["Accepted", "Ready", "Updated"]),
        status=st.sampled_from(["True", "False", "Unknown"]),
        reason=st.sampled_from(["Accepted", "NotReady", "Failing"]),
        last_transition_time=st.just(EPOCH),
        message=st.sampled_from(["", "2 of 3 workers are ready"]),
    ),
    max_size=5,
)


@given(before=CONDITIONS, after=CONDITIONS)
def test_only_another_reason_is_news_and_never_twice(
    before: Sequence[ObjectCondition], after: Sequence[ObjectCondition]
) -> None:
    reasons = {condition.type: condition.reason for condition in before}
    news = list(changed(before, after))

    assert not list(changed(news, news)) or len({each.type for each in news}) < len(news)
    assert all(condition.reason != reasons.get(condition.type) for condition in news)
    assert all(condition in after for condition in news)
    assert all(each.type in reasons or each.status != "True" for each in news)


def reasons_of(events: Sequence[Any], kind: str) -> list[tuple[str, str]]:
    """The types and reasons of the Events about a condition."""
    return [(event["type"], event["reason"]) for event in events if event["action"] == kind]


def test_a_node_set_says_once_why_it_is_not_ready_and_that_it_is() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)

        said = operator.api.said
        assert [("Warning", "NotReady"), ("Normal", "AllReady")] == reasons_of(said, "Ready")
        assert [] == reasons_of(said, "Accepted"), "it is as it should be from the start"
        assert {"NodeSet"} == {event["regarding"]["kind"] for event in said}
        count = len(said)

        await operator.lead(for_s=SETTLED_S)
        assert count == len(operator.api.said), "another leader has nothing to add"

    run(main)


def test_a_refused_field_is_an_event_as_often_as_it_is_written_but_not_within_minutes() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1))
        broken: dict[str, Any] = {"slurmd": {}}
        whole = {"slurmd": {"image": "example.test/slurmd:2"}}

        def swap(spec: Any) -> Any:
            return lambda: operator.api.change("NodeSet", "gpu", spec=spec)

        later_s = SPACING / timedelta(seconds=1) + 200.0
        await operator.lead(
            for_s=later_s + 100.0,
            then={
                60.0: swap(broken),
                90.0: swap(whole),
                120.0: swap(broken),
                150.0: swap(whole),
                later_s: swap(broken),
            },
        )

        refused = [each for each in reasons_of(operator.api.said, "Accepted") if "Bad" in each[1]]
        assert [("Warning", "BadInput")] * 2 == refused

    run(main)


def test_an_event_that_cannot_be_written_stops_nothing() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.refuses_events = True
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)

        assert "True" == operator.api.condition("gpu", "Ready")["status"]
        assert [] == operator.api.said

    run(main)
