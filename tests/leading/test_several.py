"""One process under two leases, beside processes that lead under one of them: an upgrade, and back."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmruntime.leading import several
from slurmruntime.leading.lease import RENEW_JITTER, Accession
from slurmruntime.model.leases import LeaseRecord
from tests.leading import lease_faults
from tests.leading.lease_faults import CALM_AT_S, FREEZES, SETTLED_AT_S, TIGHT, Trouble
from tests.leading.lease_world import (
    CONTROLLERS,
    EXTENDER,
    SETTINGS,
    Contender,
    Election,
    Fate,
)
from tests.virtual_time import EPOCH

pytestmark = pytest.mark.slow

BOTH = (EXTENDER, CONTROLLERS)
DURATION_S = SETTINGS.duration_s
LONGEST_RETRY_S = SETTINGS.retry_period_s * RENEW_JITTER
UNWINDING_S = 5.0


@pytest.fixture
def election() -> Iterator[Election]:
    world = Election()
    yield world
    world.world.close()


def holders(election: Election) -> list[str]:
    return [election.server.records[name].holder for name in BOTH]


def seize(election: Election, name: str) -> None:
    """Give the lease to somebody else: an administrator, or a replica after a long pause of ours."""
    somebody = LeaseRecord(
        holder="somebody",
        acquired_at=EPOCH,
        renewed_at=EPOCH,
        duration_s=DURATION_S,
        resource_version=election.server.records[name].resource_version,
    )
    election.server.replace(name, somebody)


class TestHandingOver:
    def test_it_leads_under_both(self, election: Election) -> None:
        joint = election.contender("j", leases=BOTH)
        election.run(until_s=100)

        assert joint.is_leading
        assert ["j-1", "j-1"] == holders(election)
        assert [Accession.ORDERLY] == joint.accessions

    def test_of_two_one_leads(self, election: Election) -> None:
        joint = [election.contender("j", leases=BOTH), election.contender("k", leases=BOTH)]
        election.run(until_s=100)

        assert 1 == sum(each.is_leading for each in joint)
        assert 1 == len(set(holders(election)))

    @pytest.mark.parametrize("order", [BOTH, BOTH[::-1]], ids=["first", "last"])
    def test_it_waits_for_a_separate_pair_and_works_when_both_are_gone(
        self, election: Election, order: Sequence[str]
    ) -> None:
        """Whichever of the two ends first."""
        separate = {name: election.contender(name, leases=(name,)) for name in BOTH}
        election.run(until_s=5)
        joint = election.contender("j", leases=BOTH)
        separate[order[0]].stop_at(60)
        separate[order[1]].stop_at(90)
        election.run(until_s=90)

        assert not joint.is_leading
        election.run(until_s=90 + 2 * LONGEST_RETRY_S)
        assert joint.is_leading
        assert [Accession.ORDERLY] == joint.accessions

    def test_a_separate_pair_takes_over_at_once(self, election: Election) -> None:
        joint = election.contender("j", leases=BOTH)
        election.run(until_s=5)
        separate = [election.contender(name, leases=(name,)) for name in BOTH]
        joint.stop_at(60)
        election.run(until_s=60 + LONGEST_RETRY_S)

        assert all(each.is_leading for each in separate)
        assert [Accession.ORDERLY] * 2 == [each.accessions[0] for each in separate]
        assert joint.process.task.done()

    def test_who_waits_for_the_second_lease_gives_the_first_back_when_told_to_stop(
        self, election: Election
    ) -> None:
        election.contender("c", leases=(CONTROLLERS,))
        election.run(until_s=5)
        joint = election.contender("j", leases=BOTH)
        joint.stop_at(60)
        election.run(until_s=60 + LONGEST_RETRY_S)

        assert joint.process.task.done()
        assert ["", "c-1"] == holders(election)

    def test_only_who_works_counts_as_a_leader(self, election: Election) -> None:
        """Or nobody would be told that a forgotten program keeps the second lease, and nothing is placed."""
        election.contender("c", leases=(CONTROLLERS,))
        election.run(until_s=5)
        election.contender("j", leases=BOTH)
        election.run(until_s=100)
        said = election.metrics.registry.exposition().decode()

        assert ["j-1", "c-1"] == holders(election)
        assert 'slurm_bridge_leader{lease="extender"} 1.0' not in said
        assert 'slurm_bridge_leader{lease="controllers"} 1.0' in said


class TestLosing:
    @pytest.mark.parametrize("name", BOTH)
    def test_who_loses_one_stops_and_returns_neither(self, election: Election, name: str) -> None:
        joint = election.contender("j", leases=BOTH)
        election.at(60, lambda: seize(election, name))
        election.run(until_s=60 + LONGEST_RETRY_S)
        (other,) = {*BOTH} - {name}

        (reign,) = election.reigns
        assert 60 <= reign.ended_s <= 60 + LONGEST_RETRY_S
        assert "somebody" == election.server.records[name].holder
        assert "j-1" == election.server.records[other].holder, "a write may be under way"
        assert joint.processes == 2

    @pytest.mark.parametrize("name", BOTH)
    def test_the_next_leader_is_told_that_a_write_may_be_under_way(
        self, election: Election, name: str
    ) -> None:
        joint = election.contender("j", leases=BOTH)
        election.at(60, lambda: seize(election, name))
        election.run(until_s=60 + 3 * DURATION_S)

        assert joint.is_leading
        assert [Accession.ORDERLY, Accession.SEIZED] == joint.accessions

    @pytest.mark.parametrize("name", BOTH)
    def test_a_separate_program_takes_over_only_after_all_work_has_ended(
        self, election: Election, name: str
    ) -> None:
        """The work takes its time to end, and the API server cannot be reached meanwhile."""
        election.network = lambda who, at_s: Fate(
            request_s=None if who == "j" and at_s >= 60 else 0.0
        )
        election.contender("j", leases=BOTH, unwinding_s=UNWINDING_S - 0.5)
        election.run(until_s=5)
        separate = election.contender("s", leases=(name,))
        election.run(until_s=60 + 2 * DURATION_S)
        (reign,) = election.reigns

        assert separate.is_leading
        assert separate._began_s >= reign.ended_s
        assert [Accession.SEIZED] == separate.accessions

    @pytest.mark.parametrize("name", BOTH)
    def test_work_that_does_not_end_ends_the_process(self, election: Election, name: str) -> None:
        joint = election.contender("j", leases=BOTH, unwinding_s=1000.0)
        election.at(60, lambda: seize(election, name))
        election.run(until_s=60 + LONGEST_RETRY_S + UNWINDING_S)

        assert joint.died_of
        assert not joint.is_leading

    def test_an_error_of_the_work_returns_neither(self, election: Election) -> None:
        election.contender("j", leases=BOTH, body_ends_after_s=30.0, body_fails=True)
        election.run(until_s=40)

        assert ["j-1", "j-1"] == holders(election)

    @pytest.mark.parametrize("lost", ["request_s", "reply_s"])
    @pytest.mark.parametrize("call", range(1, 7))
    def test_a_message_lost_while_the_leases_are_taken_costs_a_moment(
        self, lost: str, call: int
    ) -> None:
        count = iter(range(1, 1000))
        election = Election(
            lambda _who, _at_s: Fate(**({lost: None} if next(count) == call else {}))
        )
        joint = election.contender("j", leases=BOTH)
        election.run(until_s=DURATION_S)
        leads, held = joint.is_leading, holders(election)
        election.world.close()

        assert leads
        assert ["j-1", "j-1"] == held


def test_the_worst_accession_counts() -> None:
    orderly, seized = Accession.ORDERLY, Accession.SEIZED

    assert orderly == several.worst([orderly, orderly])
    assert seized == several.worst([seized, orderly])
    assert seized == several.worst([orderly, seized])


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32),
    wrong_by_s=st.lists(st.integers(-86_400, 86_400), min_size=6, max_size=6),
    freezes=FREEZES,
    upgraded_at_s=st.lists(st.floats(0, CALM_AT_S), min_size=2, max_size=2),
    goes_back=st.booleans(),
)
def test_during_an_upgrade_or_back_no_work_is_done_twice_and_in_the_end_all_is_done(
    seed: int,
    wrong_by_s: list[int],
    freezes: list[tuple[str, float, float]],
    upgraded_at_s: list[float],
    goes_back: bool,
) -> None:
    """Two joint replicas beside two separate pairs, one kind of which is told to stop some day."""
    election = Election(Trouble(seed, CALM_AT_S))
    kinds = {
        "a": BOTH,
        "b": BOTH,
        "c": (EXTENDER,),
        "d": (CONTROLLERS,),
        "e": (EXTENDER,),
        "f": (CONTROLLERS,),
    }
    contenders: dict[str, Contender] = {
        name: election.contender(
            name, leases=leases, wrong_by=timedelta(seconds=wrong), settings=TIGHT
        )
        for (name, leases), wrong in zip(kinds.items(), wrong_by_s, strict=True)
    }
    for name, at_s, seconds in freezes:
        contenders[name].freeze_at(at_s, seconds)
    for names, at_s in zip(("ab",) if goes_back else ("cd", "ef"), upgraded_at_s, strict=False):
        for name in names:
            contenders[name].stop_at(at_s)
    election.run(until_s=SETTLED_AT_S)
    leaders = [contender for contender in contenders.values() if contender.is_leading]
    election.world.close()

    assert [*BOTH] == sorted((name for leader in leaders for name in leader.leases), reverse=True)
    assert [] == lease_faults.unexcused(list(contenders.values()), election.reigns)
