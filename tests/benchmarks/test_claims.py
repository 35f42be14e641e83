"""What claims add is counted rightly, and a goal is reached up to its limit."""

from collections.abc import Mapping

import pytest

from benchmarks.claims import field, figures
from benchmarks.claims.figures import Flood, Way, Ways

SERVED = """\
apiserver_request_total{component="apiserver",dry_run="",resource="pods",subresource="",verb="POST"} 7
apiserver_request_total{component="apiserver",dry_run="All",resource="pods",subresource="",verb="POST"} 2
apiserver_request_total{component="apiserver",dry_run="",resource="pods",subresource="status",verb="PATCH"} 5
apiserver_request_total{component="apiserver",dry_run="",resource="pods",subresource="",verb="LIST"} 9
apiserver_request_total{component="apiserver",dry_run="",resource="leases",subresource="",verb="PUT"} 9
apiserver_request_total{component="apiserver",code="200",resource="resourceclaims",subresource="status",verb="PATCH"} 3
apiserver_request_total{component="apiserver",code="409",resource="resourceclaims",subresource="status",verb="PATCH"} 1
apiserver_request_terminations_total{component="apiserver",resource="pods",subresource="",verb="POST"} 9
"""


def flood(wall_s: float, ours: Mapping[str, int]) -> Flood:
    calls = {f"extender → Kubernetes {name}": count for name, count in ours.items()}
    return Flood(
        pods=10,
        wall_s=wall_s,
        p50_s=wall_s / 2,
        ours=calls,
        everyones={},
        cpu_s={"apiserver": 0.25, "extender": 0.05},
    )


def way(single_s: float, walls_s: tuple[float, ...], ours: Mapping[str, int]) -> Way:
    floods = [flood(wall_s, ours) for wall_s in walls_s]
    return Way(single_s=[single_s / 2, single_s, 9.0], floods=floods)


WITHOUT = way(0.25, (1.0, 2.0, 9.0), {"PATCH pods": 10, "POST pods/binding": 10})
CLAIMS = {"PATCH resourceclaims": 10, "PATCH resourceclaims/status": 10}


def test_claims_that_add_what_they_may_reach_every_goal() -> None:
    claiming = way(0.265, (2.6, 2.5, 20.0), {"PATCH pods": 10, "POST pods/binding": 10, **CLAIMS})

    ways = Ways(without=WITHOUT, claiming=claiming)
    assert [] == [goal for goal in figures.goals(ways) if not goal.is_reached]


def test_claims_that_add_more_miss_each_goal() -> None:
    claiming = way(0.28, (2.7, 2.5, 20.0), {"PATCH pods": 11, "POST pods/binding": 10, **CLAIMS})

    ways = Ways(without=WITHOUT, claiming=claiming)
    assert [] == [goal for goal in figures.goals(ways) if goal.is_reached]


def test_the_floor_is_what_kubernetes_itself_takes_longer() -> None:
    ours = Ways(without=WITHOUT, claiming=way(0.3, (8.0,), {}))
    plain = Ways(without=way(0.05, (1.0,), {}), claiming=way(0.075, (4.0,), {}))

    assert 25 == pytest.approx(plain.more_single_ms)
    assert 2.5 == figures.floor_times(ours, plain)


def test_requests_and_cpu_time_are_per_pod_over_all_floods() -> None:
    assert {"apiserver": 25, "extender": 5} == pytest.approx(WITHOUT.cpu_ms)
    assert 1 == WITHOUT.requests["extender → Kubernetes PATCH pods"]


def test_writes_of_ours_about_pods_count_and_nothing_else() -> None:
    counted = {
        "extender → Kubernetes PATCH resourceclaims/status": 4,
        "extender → Kubernetes PATCH pods": 4,
        "controllers → Kubernetes PATCH pods": 2,
        "controllers → Kubernetes POST pods": 1,
        "controllers → Kubernetes PUT leases": 8,
        "extender → Kubernetes POST events": 8,
        "extender → Kubernetes GET resourceclaims": 8,
        "extender → Slurm job.submit": 8,
        "API server → review": 8,
    }

    assert {"PATCH resourceclaims/status": 4, "PATCH pods": 6} == figures.our_writes(counted)


def test_writes_that_the_api_server_served_are_added_up_whatever_their_outcome() -> None:
    expected = {"POST pods": 7, "PATCH pods/status": 5, "PATCH resourceclaims/status": 4}

    assert expected == figures.served_writes(SERVED)


def test_pods_of_both_ways_differ_in_the_claim_only() -> None:
    plain, claiming = (field.manifest("one", claims=has_one) for has_one in (False, True))
    del claiming["spec"]["resourceClaims"]
    del claiming["spec"]["containers"][0]["resources"]["claims"]

    assert plain == claiming
