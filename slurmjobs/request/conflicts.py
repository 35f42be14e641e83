"""Find options that exclude each other: all of them, while sbatch stops at the first.

Sources: `validate_options_salloc_sbatch_srun` of Slurm's `slurm_opt.c`, `_opt_verify` of sbatch's `opt.c`.
"""

from collections.abc import Iterator
from datetime import datetime

from slurmjobs.request.settled import gpu_count
from slurmjobs.script import options as o
from slurmjobs.script.option_values import OptionValues
from slurmjobs.script.options import AnyOption
from slurmruntime.values.faults import Fault


def faults(chosen: OptionValues, now: datetime) -> Iterator[Fault]:
    """Yield every contradiction, at the path of the option given last."""
    yield from _exclusive_pairs(chosen)
    yield from _gpus(chosen)
    yield from _tres_per_task(chosen)
    yield from _sizes(chosen)
    yield from _times(chosen, now)


def _clash(chosen: OptionValues, *options: AnyOption) -> Iterator[Fault]:
    clashing = [option for option in options if chosen.has(option)]
    if len(clashing) > 1:
        names = " and ".join(f"--{option.name}" for option in clashing)
        yield Fault(chosen.path(*clashing), f"{names} exclude each other: keep one")


def _exclusive_pairs(chosen: OptionValues) -> Iterator[Fault]:
    yield from _clash(chosen, o.MEM, o.MEM_PER_CPU, o.MEM_PER_GPU)
    yield from _clash(chosen, o.CORE_SPEC, o.THREAD_SPEC)
    yield from _clash(chosen, o.EXCLUSIVE, o.OVERSUBSCRIBE)
    yield from _clash(chosen, o.CPUS_PER_TASK, o.CPUS_PER_GPU)
    if "cpu" in (chosen.get(o.TRES_PER_TASK) or "").lower():
        yield from _clash(chosen, o.TRES_PER_TASK, o.CPUS_PER_TASK)
        yield from _clash(chosen, o.TRES_PER_TASK, o.CPUS_PER_GPU)
    flags = chosen.get(o.GRES_FLAGS) or ()
    if len(flags) > 1:
        yield Fault(
            chosen.path(o.GRES_FLAGS), "disable-binding and enforce-binding exclude each other"
        )


def _gpus(chosen: OptionValues) -> Iterator[Fault]:
    if "gres/gpu" in (chosen.get(o.GRES) or ""):
        yield from _clash(chosen, o.GRES, o.GPUS_PER_NODE)
    per_gpu, per_tres = chosen.get(o.NTASKS_PER_GPU), chosen.get(o.NTASKS_PER_TRES)
    if per_gpu is not None and per_tres is not None and per_gpu != per_tres:
        yield from _clash(chosen, o.NTASKS_PER_GPU, o.NTASKS_PER_TRES)
    per = o.NTASKS_PER_GPU if per_gpu is not None else o.NTASKS_PER_TRES
    if chosen.has(per):
        for other in (
            o.TRES_PER_TASK,
            o.GPUS_PER_TASK,
            o.GPUS_PER_SOCKET,
            o.NTASKS_PER_NODE,
            o.TASKS_PER_NODE,
        ):
            yield from _clash(chosen, per, other)
    gpus, per_task = (gpu_count(chosen.get(option)) for option in (o.GPUS, o.GPUS_PER_TASK))
    tasks = chosen.get(o.NTASKS) or (gpus // per_task if per_task else 0)
    if gpus and per_task and gpus != tasks * per_task:
        yield Fault(
            chosen.path(o.GPUS, o.GPUS_PER_TASK, o.NTASKS),
            f"--gpus ({gpus}) is not --ntasks ({tasks}) times --gpus-per-task ({per_task})",
        )
    for item in (chosen.get(o.GPUS_PER_TASK) or "").split(","):
        kind = item.partition(":")[0] if ":" in item else ""
        name = f"gres/gpu:{kind}" if kind else "gres/gpu"
        if item and name in (chosen.get(o.TRES_PER_TASK) or "").lower():
            yield from _clash(chosen, o.TRES_PER_TASK, o.GPUS_PER_TASK)
            return


_NOT_PER_TASK = ("mem", "energy", "node", "billing", "fs", "vmem", "pages", "bb")


def _tres_per_task(chosen: OptionValues) -> Iterator[Fault]:
    text = (chosen.get(o.TRES_PER_TASK) or "").lower()
    for name in _NOT_PER_TASK:
        if any(part.startswith(name) for part in text.split(",")):
            yield Fault(chosen.path(o.TRES_PER_TASK), f"--tres-per-task cannot have {name}")


def _sizes(chosen: OptionValues) -> Iterator[Fault]:
    per_core, threads = chosen.get(o.NTASKS_PER_CORE), chosen.get(o.THREADS_PER_CORE)
    if per_core is not None and threads is not None and threads < per_core:
        yield Fault(
            chosen.path(o.NTASKS_PER_CORE, o.THREADS_PER_CORE),
            f"--ntasks-per-core ({per_core}) is more than --threads-per-core ({threads})",
        )
    segment, nodes = chosen.get(o.SEGMENT), chosen.get(o.NODES)
    if segment and nodes is not None:
        count = nodes.most if nodes.sizes and nodes.most else nodes.least
        if count > segment and count % segment:
            yield Fault(
                chosen.path(o.SEGMENT, o.NODES),
                f"--nodes ({count}) is not a multiple of --segment ({segment})",
            )
    yield from _layout(chosen)


def _layout(chosen: OptionValues) -> Iterator[Fault]:
    layout = chosen.get(o.DISTRIBUTION)
    if layout is None:
        return
    nodes = chosen.get(o.NODES)
    if layout.order == "arbitrary":
        if nodes is not None:
            yield Fault(
                chosen.path(o.DISTRIBUTION, o.NODES),
                "--distribution=arbitrary excludes --nodes: its nodes are those of --nodelist",
            )
        if not chosen.has(o.NODELIST):
            yield Fault(chosen.path(o.DISTRIBUTION), "--distribution=arbitrary needs --nodelist")
    tasks = chosen.get(o.NTASKS) or 1
    if layout.plane_size and nodes is not None and nodes.least > 0:
        size = layout.plane_size
        if tasks // size < nodes.least and (nodes.least - 1) * size >= tasks:
            yield Fault(
                chosen.path(o.DISTRIBUTION, o.NODES, o.NTASKS),
                f"{tasks} tasks are too few for planes of {size} on {nodes.least} nodes",
            )


def _times(chosen: OptionValues, now: datetime) -> Iterator[Fault]:
    begin, deadline = chosen.get(o.BEGIN), chosen.get(o.DEADLINE)
    if begin is not None and deadline is not None and deadline.at(now) < begin.at(now):
        yield Fault(chosen.path(o.BEGIN, o.DEADLINE), "--deadline is before --begin")
