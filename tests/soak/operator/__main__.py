"""`python -m tests.soak.operator`: random histories of a Slurm of pods, on real kubelets and with real jobs.

NodeSets are scaled and updated, partitions come, go and get new names, Kubernetes nodes cordoned, workers evicted and deleted, daemons, workers, kubelets and the operator
killed, Slurm and the API server away. A job may end by itself, by a person, or with its worker if the history killed that.
Writes its section of docs/reliability.md, and ends with 1 if a contract was broken.
"""

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer

from sandbox.operator import images
from tests.realnodes.in_pods import STARTS_S, InPods, slurms_in_pods
from tests.servers import wait_until
from tests.soak import report
from tests.soak.operator.history import OperatorHistory
from tests.soak.operator.shared import SharedWorld


def main(
    *,
    histories: Annotated[
        int, typer.Option(help="How many, those of earlier runs included.", min=1)
    ] = 200,
    minutes: Annotated[
        float, typer.Option(help="Begin no history after so many minutes; 0: all.", min=0)
    ] = 0,
    at_a_time: Annotated[
        int, typer.Option(help="How many Slurms live through one each, on the same nodes.", min=1)
    ] = 6,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 1,
    anew: Annotated[
        bool, typer.Option("--anew", help="Do not go on where the last run ended.")
    ] = False,
) -> None:
    """Find out whether anything can cost a job that runs on a worker."""
    began_s = time.monotonic()
    found = None if anew else report.kept("operator")
    if found is None or found["seed"] != seed:
        found = {**report.about(seed), "done": 0, "jobs": 0, "excused": 0}
        found |= {"forgotten": 0, "unmissed": 0, "kinds": {}, "breaches": []}
    names = [f"slurm-{number}" for number in range(at_a_time)]
    with slurms_in_pods(images.ready(), names) as slurms:
        wait_until(lambda: all(map(_has_workers, slurms)), STARTS_S)
        while found["done"] < histories and not 0 < minutes * 60 < time.monotonic() - began_s:
            _round(found, slurms)
    raise typer.Exit(1 if found["breaches"] else 0)


def _has_workers(in_pods: InPods) -> bool:
    return in_pods.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n"


def _round(found: dict[str, Any], slurms: Sequence[InPods]) -> None:
    """Let each Slurm live through a history, all at the same time, and keep what comes of it."""
    began_s = time.monotonic()
    world = SharedWorld(slurms[0].sandbox)
    first = 1000 * found["seed"] + found["done"]
    histories = [
        OperatorHistory(each, seed, world, at_a_time=len(slurms))
        for seed, each in enumerate(slurms, first)
    ]
    with ThreadPoolExecutor(len(slurms)) as threads:
        list(threads.map(OperatorHistory.live, histories))
        lived_s = time.monotonic() - began_s
        list(threads.map(OperatorHistory.calm_down, histories))  # not before all have lived
        broken = list(threads.map(OperatorHistory.breaches, histories))
    for history, breaches in zip(histories, broken, strict=True):
        _count(found, history, breaches)
    report.keep("operator", found)
    typer.echo(f"  lived for {lived_s:.0f} s, all well after {time.monotonic() - began_s:.0f} s")


def _count(found: dict[str, Any], history: OperatorHistory, broken: Sequence[str]) -> None:
    number = found["done"]
    found["done"] += 1
    found["jobs"] += len(history.jobs)
    found["excused"] += history.excused
    found["unmissed"] += history.unmissed
    found["forgotten"] += sum(bool(job.ended) for job in history.jobs)
    done = (step.replace("_", " ") for step in history.told if " failed" not in step)
    found["kinds"] = dict(Counter(found["kinds"]) + Counter(done))
    found["breaches"] += [f"history {number}: {each}" for each in broken]
    typer.echo(
        f"history {number}: {len(history.jobs)} jobs, {len(broken)} contracts broken:"
        f" {', '.join(history.told)}"
    )
    for line in broken:
        typer.echo(f"  {line}")


if __name__ == "__main__":
    typer.run(main)
