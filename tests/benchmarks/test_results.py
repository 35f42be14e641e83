"""What a run has measured survives being stored, and is compared figure by figure."""

from typing import Any

import msgspec
import pytest

from benchmarks import results
from benchmarks.results import Machine, Micro, Phase, Run, Shape, Spread, Usage


def run(**changes: Any) -> Run:
    usage = Usage(
        cpu_s={"extender": 0.5, "slurmrestd": 0.25},
        memory_mib={"extender": 120.0},
        calls={"extender → Slurm job.submit": 200, "kube-scheduler → filter": 200},
    )
    whole = Run(
        commit="abc",
        began_at="2026-05-04T12:00:00+00:00",
        machine=Machine(cores=2, processor="x", memory_gib=24.0, python="3.11.7", load_before=0.1),
        shape=Shape(pods=200, nodes=100, waiting_s=40, is_profiled=False),
        phases={"through us": Phase(pods=200, wall_s=4.0, usage=usage)},
        micro={"webhook alone": Micro(count=2000, cpu_ms=0.5, per_s=200)},
    )
    return msgspec.structs.replace(whole, **changes)


def phase(found: Run, **changes: Any) -> dict[str, Phase]:
    return {"through us": msgspec.structs.replace(found.phases["through us"], **changes)}


def test_percentiles_are_measurements_by_nearest_rank() -> None:
    hundred = [n / 100 for n in range(100, 0, -1)]

    assert Spread(p50_s=0.5, p99_s=0.99, longest_s=1.0) == results.spread(hundred)


@pytest.mark.parametrize(("seconds", "p50"), [([3.0], 3.0), ([1.0, 2.0], 1.0), ([1, 2, 3], 2)])
def test_few_measurements_have_percentiles_too(seconds: list[float], p50: float) -> None:
    found = results.spread(seconds)

    assert (p50, max(seconds), max(seconds)) == (found.p50_s, found.p99_s, found.longest_s)


def test_a_stored_run_reads_back_the_same() -> None:
    with_spread = run(phases=phase(run(), spread=results.spread([0.25, 0.5])))

    assert with_spread == results.read(results.write(with_spread))


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'{"commit": 1}'])
def test_what_is_no_run_is_refused_in_words(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a run of this version"):
        results.read(body)


def test_every_figure_that_both_runs_have_is_compared() -> None:
    before = run()
    now = run(
        phases=phase(before, wall_s=3.0, spread=results.spread([1.0])),
        micro={"webhook alone": Micro(count=2000, cpu_ms=0.75, per_s=200)},
    )

    changes = {change.name: change.percent for change in results.compare(before, now)}

    assert {"through us: seconds": -25.0, "webhook alone: CPU ms each": 50.0} == {
        name: percent for name, percent in changes.items() if percent
    }
    assert changes.keys() == results.figures(before).keys()


def test_what_was_nothing_has_no_percentage() -> None:
    change = results.Change(name="through us: CPU s webhook", before=0.0, now=0.1)

    assert change.percent is None


def test_runs_of_different_shape_are_not_compared() -> None:
    other = run(shape=Shape(pods=1000, nodes=100, waiting_s=40, is_profiled=False))

    with pytest.raises(ValueError, match="pods=1000"):
        results.compare(other, run())


@pytest.mark.parametrize(
    "changed", [{"column": "fastest"}, {"column": "defaults", "values": ("admission.calls=one",)}]
)
def test_runs_of_different_columns_are_compared_only_on_request(changed: dict[str, Any]) -> None:
    shape = msgspec.structs.replace(run().shape, column="defaults", values=("admission.calls=two",))
    before, now = run(shape=shape), run(shape=msgspec.structs.replace(shape, **changed))

    with pytest.raises(ValueError, match=r"admission\.calls"):
        results.compare(before, now)
    assert results.compare(before, now, across_columns=True)


def test_a_run_of_an_older_version_has_no_column() -> None:
    stored = msgspec.json.decode(results.write(run()))
    for later in ("column", "values"):
        del stored["shape"][later]
    for later in ("first_s", "first_200_s"):
        del stored["phases"]["through us"][later]
    del stored["idle"]

    assert run() == results.read(msgspec.json.encode(stored))


def test_calls_are_added_up_by_the_words_in_their_names() -> None:
    usage = Usage(
        cpu_s={},
        memory_mib={},
        calls={
            "extender → Slurm job.submit": 3,
            "controllers → Slurm job.get": 4,
            "extender → Kubernetes PATCH pods": 5,
        },
    )

    assert (7, 3, 0) == (
        usage.calls_of("Slurm"),
        usage.calls_of("extender", "Slurm"),
        usage.calls_of("filter"),
    )
