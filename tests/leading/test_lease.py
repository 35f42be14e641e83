"""Leader election with lost messages, wrong clocks, frozen and dying leaders, in virtual time."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from slurmruntime.leading import lease
from slurmruntime.leading.lease import RENEW_JITTER, Accession, Claim
from slurmruntime.model.leases import LeaseRecord
from tests.leading.lease_world import EXTENDER, SETTINGS, Election, Fate, Reign
from tests.virtual_time import EPOCH

DURATION_S = SETTINGS.duration_s
LONGEST_RETRY_S = SETTINGS.retry_period_s * RENEW_JITTER
RECORD = LeaseRecord(
    holder="a",
    acquired_at=EPOCH,
    renewed_at=EPOCH,
    duration_s=15,
    transitions=3,
    resource_version="7",
)


class TestClaim:
    @pytest.mark.parametrize(
        ("record", "unchanged_s", "expected"),
        [
            pytest.param(None, 0, Claim.CREATE, id="nobody ever led"),
            pytest.param(replace(RECORD, holder="me"), 99, Claim.RENEW, id="ours"),
            pytest.param(replace(RECORD, holder=""), 0, Claim.TAKE, id="released"),
            pytest.param(RECORD, 14.9, Claim.FOLLOW, id="another's"),
            pytest.param(RECORD, 15, Claim.TAKE, id="another's, not renewed in time"),
            pytest.param(
                replace(RECORD, duration_s=60), 20, Claim.FOLLOW, id="the holder said longer"
            ),
        ],
    )
    def test_whose_lease_it_is_decides(
        self, record: LeaseRecord | None, unchanged_s: float, expected: Claim
    ) -> None:
        assert expected == lease.claim(record, "me", unchanged_s)

    def test_a_renewal_keeps_everything_but_its_time(self) -> None:
        now = EPOCH + timedelta(seconds=5)

        assert replace(RECORD, renewed_at=now) == lease.held_by("a", RECORD, now, duration_s=15)

    def test_a_change_of_hands_is_counted(self) -> None:
        now = EPOCH + timedelta(seconds=5)

        assert LeaseRecord(
            holder="me",
            acquired_at=now,
            renewed_at=now,
            duration_s=20,
            transitions=4,
            resource_version="7",
        ) == lease.held_by("me", RECORD, now, duration_s=20)


@pytest.fixture
def election() -> Iterator[Election]:
    world = Election()
    yield world
    world.world.close()


class TestLeading:
    def test_one_leads_and_the_other_follows(self, election: Election) -> None:
        contenders = [election.contender("a"), election.contender("b")]
        election.run(until_s=300)

        assert 1 == sum(contender.is_leading for contender in contenders)
        assert [] == election.reigns, "nobody has stopped leading"

    def test_who_is_told_to_stop_hands_over_at_once(self, election: Election) -> None:
        first = election.contender("a")
        election.run(until_s=5)
        second = election.contender("b")
        first.stop_at(60)
        election.run(until_s=60 + LONGEST_RETRY_S)

        assert [Reign(who="a", began_s=0, ended_s=60)] == election.reigns
        assert second.is_leading
        assert ([Accession.ORDERLY], [Accession.ORDERLY]) == (first.accessions, second.accessions)
        assert first.process.task.done()

    def test_a_released_lease_says_so(self, election: Election) -> None:
        first = election.contender("a")
        first.stop_at(60)
        election.run(until_s=61)

        assert election.server.record is not None
        assert ("", 0) == (election.server.record.holder, election.server.record.transitions)

    def test_the_lease_is_kept_until_the_body_has_ended(self, election: Election) -> None:
        first = election.contender("a", unwinding_s=100.0)
        election.run(until_s=5)
        second = election.contender("b")
        first.stop_at(60)
        election.run(until_s=159)

        assert not second.is_leading
        election.run(until_s=160 + LONGEST_RETRY_S)
        assert second.is_leading

    def test_a_dead_leaders_lease_is_taken_when_it_has_run_out(self, election: Election) -> None:
        first = election.contender("a")
        election.run(until_s=5)
        second = election.contender("b")
        first.freeze_at(60, 10_000)
        election.run(until_s=60 - LONGEST_RETRY_S + DURATION_S)

        assert not second.is_leading
        election.run(until_s=60 + DURATION_S + 2 * LONGEST_RETRY_S)
        assert second.is_leading
        assert [Accession.SEIZED] == second.accessions

    def test_a_body_that_ends_by_itself_ends_it_all_and_releases(self, election: Election) -> None:
        first = election.contender("a", body_ends_after_s=30.0)
        election.run(until_s=31)

        assert first.process.task.done()
        assert election.server.record is not None
        assert "" == election.server.record.holder

    def test_what_a_body_that_failed_had_under_way_the_next_one_is_told_of(
        self, election: Election
    ) -> None:
        election.contender("a", body_ends_after_s=30.0, body_fails=True)
        election.run(until_s=5)
        second = election.contender("b")
        election.run(until_s=30 - LONGEST_RETRY_S + DURATION_S)

        assert not second.is_leading, "the lease was released although a write may be under way"
        election.run(until_s=30 + DURATION_S + 2 * LONGEST_RETRY_S)
        assert [Accession.SEIZED] == second.accessions

    def test_a_renewal_costs_one_call_every_retry_period(self, election: Election) -> None:
        election.contender("a")
        election.run(until_s=1000)

        assert election.server.calls <= 4 + 1000 / SETTINGS.retry_period_s


class TestTrouble:
    def test_who_cannot_renew_stops_before_anybody_else_may_start(self) -> None:
        cut_off_at_s = 60.0
        election = Election(
            lambda who, at_s: Fate(request_s=None if who == "a" and at_s >= cut_off_at_s else 0)
        )
        election.contender("a")
        election.run(until_s=5)
        second = election.contender("b")
        election.run(until_s=120)
        election.world.close()
        (reign,) = (reign for reign in election.reigns if reign.who == "a")

        assert second.name == next(r.who for r in election.reigns if r.began_s > 5)
        assert cut_off_at_s < reign.ended_s <= cut_off_at_s + SETTINGS.renew_deadline_s

    def test_a_body_that_was_cut_off_leaves_the_lease_to_run_out(self) -> None:
        """Told to stop just then, with the API server back: the next one still has to know."""
        cut_off_at_s, back_at_s = 60.0, 70.9
        election = Election(
            lambda who, at_s: Fate(
                request_s=None if who == "a" and cut_off_at_s <= at_s < back_at_s else 0
            )
        )
        first = election.contender("a")
        election.run(until_s=5)
        second = election.contender("b")
        first.stop_at(71)
        election.run(until_s=120)
        election.world.close()

        (reign,) = (reign for reign in election.reigns if reign.who == "a")
        assert reign.ended_s < 71, "it was to be cut off before it was told to stop"
        assert first.process.task.done()
        assert [Accession.SEIZED] == second.accessions

    def test_an_outage_shorter_than_the_deadline_changes_nothing(self) -> None:
        election = Election(lambda _who, at_s: Fate(request_s=None if 60 <= at_s < 66 else 0))
        first = election.contender("a")
        election.run(until_s=120)
        election.world.close()

        assert [Reign(who="a", began_s=0, ended_s=120)] == election.reigns
        assert not first.is_leading

    def test_one_call_that_hangs_changes_nothing(self) -> None:
        election = Election(lambda _who, at_s: Fate(request_s=1000 if 60 <= at_s < 64 else 0))
        election.contender("a")
        election.run(until_s=120)

        assert [] == election.reigns
        election.world.close()

    def test_a_body_that_is_slow_to_end_keeps_others_from_starting_if_it_can(self) -> None:
        election = Election(
            lambda who, at_s: Fate(request_s=None if who == "a" and 60 <= at_s < 70 else 0)
        )
        first = election.contender("a", unwinding_s=4.0)
        election.run(until_s=5)
        second = election.contender("b")
        election.run(until_s=200)

        assert [True, False] == [first.is_leading, second.is_leading]
        assert ["a"] == [reign.who for reign in election.reigns]
        assert "" == first.died_of
        election.world.close()

    def test_a_body_that_does_not_end_ends_the_process(self) -> None:
        """Else it would hold the lease for ever, as it can renew it again."""
        election = Election(
            lambda who, at_s: Fate(request_s=None if who == "a" and 60 <= at_s < 70 else 0)
        )
        first = election.contender("a", unwinding_s=10_000.0)
        election.run(until_s=5)
        second = election.contender("b")
        election.run(until_s=70 + 5 + DURATION_S + 2 * LONGEST_RETRY_S)

        assert "its work was cancelled and did not end within 5 s" in first.died_of
        assert second.is_leading
        assert [Accession.SEIZED] == second.accessions
        election.world.close()

    def test_after_an_outage_somebody_leads_again(self) -> None:
        election = Election(lambda _who, at_s: Fate(request_s=None if 60 <= at_s < 200 else 0))
        contenders = [election.contender("a"), election.contender("b")]
        election.run(until_s=190)

        assert not any(contender.is_leading for contender in contenders)
        election.run(until_s=200 + DURATION_S + 2 * LONGEST_RETRY_S)
        assert 1 == sum(contender.is_leading for contender in contenders)
        election.world.close()

    def test_who_has_lost_the_lease_does_not_delay_its_successor(self) -> None:
        """It neither renews the lease nor takes it again before it has started afresh."""
        election = Election(
            lambda who, at_s: Fate(request_s=None if who == "a" and 60 <= at_s < 71 else 0)
        )
        first = election.contender("a")
        election.run(until_s=5)
        second = election.contender("b")
        election.run(until_s=60 + DURATION_S + 2 * LONGEST_RETRY_S)

        assert [False, True] == [first.is_leading, second.is_leading]
        assert [Accession.SEIZED] == second.accessions
        election.world.close()

    def test_who_has_lost_the_lease_starts_afresh_once_the_api_server_answers(self) -> None:
        """A process that starts sooner would fail, and fall into Kubernetes' back-off."""
        election = Election(lambda _who, at_s: Fate(request_s=None if 60 <= at_s < 200 else 0))
        first = election.contender("a")
        election.run(until_s=199)

        assert 1 == first.processes
        election.run(until_s=200 + 2 * LONGEST_RETRY_S)
        assert 2 == first.processes
        election.world.close()

    def test_a_claim_whose_reply_was_lost_is_recognised(self) -> None:
        election = Election(lambda _who, at_s: Fate(reply_s=None if at_s < 1 else 0))
        first = election.contender("a")
        election.run(until_s=10)

        assert first.is_leading
        assert election.server.record is not None
        assert 0 == election.server.record.transitions
        election.world.close()

    def test_a_lease_that_was_taken_away_ends_the_body(self, election: Election) -> None:
        first = election.contender("a")
        election.run(until_s=60)
        taken = election.server.record
        assert taken is not None
        election.server.replace(EXTENDER, replace(taken, holder="somebody"))
        election.run(until_s=60 + LONGEST_RETRY_S)

        assert not first.is_leading
        election.run(until_s=60 + DURATION_S + 2 * LONGEST_RETRY_S)
        assert first.is_leading, "somebody never renewed it"

    def test_a_leader_that_was_frozen_stops_as_soon_as_it_wakes(self, election: Election) -> None:
        """Two lead at the same time as long as the one is frozen: a lease is no fence."""
        first = election.contender("a")
        election.run(until_s=5)
        second = election.contender("b")
        first.freeze_at(60, 100)
        election.run(until_s=170)

        assert [Reign(who="a", began_s=0, ended_s=160)] == election.reigns
        assert second.is_leading


@pytest.mark.attack(
    "with a stolen token of ours, write once into a program's lease that its holder has it for 68 years",
    "a lease that is not renewed is taken over after a minute, whatever it says",
)
def test_a_lease_is_left_to_a_holder_who_is_gone_for_a_minute_whatever_it_says(
    election: Election,
) -> None:
    contenders = [election.contender("a")]
    election.run(until_s=60)
    contenders.append(election.contender("b"))
    before = election.server.record
    assert before is not None
    stolen = replace(before, holder="thief", duration_s=2**31 - 1, resource_version="stolen")
    election.at(70, lambda: setattr(election.server, "record", stolen))

    election.run(until_s=125)
    assert not any(contender.is_leading for contender in contenders)
    election.run(until_s=135 + LONGEST_RETRY_S)
    assert 1 == sum(contender.is_leading for contender in contenders)
