"""What counters, histograms and efficiency are to be after the seeded jobs have ended, made of sacct's records."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from slurmexporter.jobtable.tally import BOUNDS_S, RATIO_BOUNDS
from tests.exporter.commands_detail import Fields, moment_s, span_s
from tests.exporter.commands_say import amounts
from tests.exporter.expected import Expected, Labels
from tests.exporter.seeded import Evidence

Observed = Iterable[tuple[Labels, float]]
_SECONDS: Final = {"cpu": "cpu", "gpu": "gres/gpu", "node": "node"}


def of_records(name: str, seen: Evidence) -> tuple[Mapping[Labels, float], Expected] | None:
    """What we and sacct say of a counter or histogram; None if it is none of them."""
    jobs = [row for row in seen.records if "." not in row["JobID"]]
    ran = [row for row in jobs if row["AllocTRES"]]
    histograms: Mapping[str, tuple[Sequence[float], Observed]] = {
        "slurm_job_wait_seconds": (BOUNDS_S, [(_partition(row), _waited_s(row)) for row in ran]),
        "slurm_job_run_seconds": (
            BOUNDS_S,
            [((*_partition(row), _state(row)), float(row["ElapsedRaw"])) for row in ran],
        ),
        "slurm_job_timelimit_used_ratio": (
            RATIO_BOUNDS,
            [
                (_partition(row), float(row["ElapsedRaw"]) / 60 / float(row["TimelimitRaw"]))
                for row in ran
            ],
        ),
        "slurm_job_cpu_efficiency_ratio": (
            RATIO_BOUNDS,
            [(_partition(row), span_s(row["TotalCPU"]) / _held(row, "cpu")) for row in _with_steps(seen)],
        ),
        "slurm_job_memory_efficiency_ratio": (
            RATIO_BOUNDS,
            [
                (_partition(row), _peak(row, seen) / amounts(row["AllocTRES"])["mem"])
                for row in _with_steps(seen)
            ],
        ),
    }  # fmt: skip
    counters: Mapping[str, Observed] = {
        "slurm_job_submits_total": [(_where(row), 1) for row in jobs],
        "slurm_job_starts_total": [(_where(row), 1) for row in ran],
        "slurm_job_requeues_total": [
            (_where(row), float(row["Restarts"])) for row in jobs if row["Restarts"] not in {"", "0"}
        ],
        "slurm_job_ends_total": [((*_where_ended(row), _state(row)), 1) for row in jobs],
        **{
            f"slurm_allocated_{kind}_seconds_total": [(_where(row), _held(row, tres)) for row in ran]
            for kind, tres in _SECONDS.items()
        },
        "slurm_wasted_cpu_seconds_total": [
            (_account(row), _held(row, "cpu") - span_s(row["TotalCPU"])) for row in _with_steps(seen)
        ],
        "slurm_wasted_memory_byte_seconds_total": [
            (
                _account(row),
                (amounts(row["AllocTRES"])["mem"] - _peak(row, seen)) * float(row["ElapsedRaw"]),
            )
            for row in _with_steps(seen)
        ],
    }  # fmt: skip
    if name in counters:
        return seen.ended.get(name, {}), _sums(counters[name])
    if name not in histograms:
        return None
    bounds, observed = histograms[name]
    ours = {
        (*labels, ("figure", figure)): value
        for figure in ("bucket", "sum", "count")
        for labels, value in seen.ended.get(f"{name}_{figure}", {}).items()
    }
    return ours, _sums(_histogram(bounds, observed))


def _histogram(bounds: Sequence[float], observed: Observed) -> Observed:
    """Yield what each observation adds to the series of its histogram."""
    for labels, value in observed:
        for bound in (*bounds, float("inf")):
            key = (*labels, ("le", f"{bound:g}".replace("inf", "+Inf")))
            yield (*sorted(key), ("figure", "bucket")), float(value <= bound)
        yield (*sorted(labels), ("figure", "sum")), value
        yield (*sorted(labels), ("figure", "count")), 1


def _sums(observed: Observed) -> Expected:
    found: dict[Labels, float] = defaultdict(float)
    for labels, value in observed:
        found[labels] += value
    return found


def _where(row: Fields) -> Labels:
    return (*_account(row), *_partition(row))


def _where_ended(row: Fields) -> Labels:
    """For sacct a job that never started stays in all its partitions; slurmctld keeps the last."""
    last = row["Partition"].rpartition(",")[2]
    return (*_account(row), ("partition", last))


def _account(row: Fields) -> Labels:
    return (("account", row["Account"]),)


def _partition(row: Fields) -> Labels:
    return (("partition", row["Partition"]),)


def _state(row: Fields) -> tuple[str, str]:
    return "state", row["State"].split()[0]


def _waited_s(row: Fields) -> float:
    return moment_s(row["Start"]) - moment_s(row["Eligible"])


def _held(row: Fields, tres: str) -> float:
    """What a job held, times how long it ran."""
    return amounts(row["AllocTRES"]).get(tres, 0) * float(row["ElapsedRaw"])


def _steps(job: Fields, seen: Evidence) -> Sequence[Fields]:
    return [row for row in seen.records if row["JobID"].startswith(job["JobID"] + ".")]


def _with_steps(seen: Evidence) -> Sequence[Fields]:
    return [row for row in seen.records if _steps(row, seen)]


def _peak(job: Fields, seen: Evidence) -> float:
    """The most memory that one step had; sacct prints it without `=`."""
    return max(amounts(f"mem={row['MaxRSS']}")["mem"] for row in _steps(job, seen))
