"""Write the job that slurmrestd gets: the fields of `job_desc_msg` (OpenAPI), without script and environment.

Source: `slurm_opt_create_job_desc` of Slurm's `slurm_opt.c` and `_fill_job_desc_from_opts` of sbatch.
"""

from collections.abc import Iterator
from typing import Final

from slurmjobs.request.origin import ScriptOrigin
from slurmjobs.request.settled import EffectiveOptions, gpu_count, tasks_per_node
from slurmjobs.script import options as o
from slurmjobs.script.options import SbatchOption
from slurmjobs.script.values.times import UNLIMITED
from slurmruntime.values import hostlist

_UNSET_16: Final = 65534
"""NO_VAL16 of slurm.h: slurmrestd reads a missing field as 0, and here 0 has a meaning."""

_FLAGS: Final[dict[SbatchOption[bool], str]] = {
    o.CONSOLIDATE_SEGMENTS: "CONSOLIDATE_SEGMENTS",
    o.SPREAD_JOB: "SPREAD_JOB",
    o.SPREAD_SEGMENTS: "SPREAD_SEGMENTS",
    o.STEPMGR: "STEPMGR_ENABLED",
    o.USE_MIN_NODES: "PREFER_MINIMUM_NODE_COUNT",
}

Field = tuple[str, object]


def fields(options: EffectiveOptions, name: str, origin: ScriptOrigin) -> dict[str, object]:
    """Return the fields of the job, which has this name unless the options have one."""
    chosen = options.chosen
    own_name = chosen.get(o.JOB_NAME)
    description: dict[str, object] = {"name": own_name or name}
    for option in o.OPTIONS:
        if option.sent_as and (value := chosen.get(option)) is not None:
            description[option.sent_as] = value
    description.update(_sizes(options))
    description.update(_memory(options))
    description.update(_gres(options))
    description.update(_nodes(options))
    description.update(_files(options, origin))
    description.update(_when(options, origin))
    description.update(_behaviour(options))
    if flags := list(_flags(options)):
        description["flags"] = flags
    return description


def _sizes(options: EffectiveOptions) -> Iterator[Field]:
    chosen, counts, shape = options.chosen, options.counts, options.shape
    per_node, cpus = tasks_per_node(chosen), options.per_task.cpus
    estimated = counts.tasks
    if per_node and not counts.tasks_are_set and counts.most_nodes in {counts.least_nodes, 0}:
        estimated = counts.least_nodes * per_node
    if (tasks := _tasks(options)) is not None:
        yield "tasks", tasks
    if chosen.has(o.OVERCOMMIT):
        yield "overcommit", True
        yield "minimum_cpus", max(counts.least_nodes, 1)
    elif cpus is not None:
        yield "minimum_cpus", estimated * cpus
    elif counts.nodes_are_set and counts.least_nodes == 0:
        yield "minimum_cpus", 0
    else:
        yield "minimum_cpus", estimated
    if cpus is not None:
        yield "cpus_per_task", cpus
    least_cpus = max(chosen.get(o.MINCPUS) or 0, cpus or 0)
    if least_cpus:
        yield "minimum_cpus_per_node", least_cpus
    for key, value in (
        ("tasks_per_node", per_node),
        ("tasks_per_core", options.tasks_per_core),
        ("ntasks_per_tres", chosen.get(o.NTASKS_PER_TRES) or chosen.get(o.NTASKS_PER_GPU)),
        ("sockets_per_node", shape.sockets),
        ("cores_per_socket", shape.cores),
        ("threads_per_core", shape.threads),
    ):
        if value is not None:
            yield key, value


def _tasks(options: EffectiveOptions) -> int | None:
    """Return the number of tasks, given or derived from nodes and GPUs (`gres_job_state_validate`)."""
    chosen, counts, per_task = options.chosen, options.counts, options.per_task
    if counts.tasks_are_set:
        return counts.tasks
    per_gpu = chosen.get(o.NTASKS_PER_TRES) or chosen.get(o.NTASKS_PER_GPU)
    gpus = gpu_count(chosen.get(o.GPUS))
    nodes = counts.most_nodes if counts.most_nodes == counts.least_nodes else 0
    gpus = gpus or gpu_count(chosen.get(o.GPUS_PER_NODE)) * max(counts.least_nodes, 1)
    if per_gpu and gpus:
        return gpus * per_gpu
    gpus_per_task = gpu_count(chosen.get(o.GPUS_PER_TASK))
    if nodes and (per_gpu or per_task.tres):
        per_node = per_gpu or tasks_per_node(chosen)
        if per_node or per_task.cpus is None:
            return nodes * (per_node or 1)
    if gpus_per_task and chosen.has(o.GPUS) and gpus % gpus_per_task == 0:
        return gpus // gpus_per_task
    return None


def _nodes(options: EffectiveOptions) -> Iterator[Field]:
    chosen, counts = options.chosen, options.counts
    node_range, per_node = chosen.get(o.NODES), tasks_per_node(chosen)
    if node_range is not None and node_range.sizes and counts.most_nodes:
        yield "nodes", node_range.sizes
    if counts.nodes_are_set:
        yield "minimum_nodes", counts.least_nodes
        if counts.most_nodes:
            yield "maximum_nodes", counts.most_nodes
    elif counts.tasks_are_set and per_node:
        yield "minimum_nodes", -(-counts.tasks // per_node)
    names = chosen.get(o.NODELIST)
    if names is not None:
        yield "required_nodes", [names if "{" in names else _sort_nodes(options, names)]
    if (excluded := chosen.get(o.EXCLUDE)) is not None:
        yield "excluded_nodes", [excluded]


def _sort_nodes(options: EffectiveOptions, names: str) -> str:
    """Sort the names and drop repetitions, unless their order places the tasks."""
    layout = options.chosen.get(o.DISTRIBUTION)
    nodes = hostlist.expand(names)
    if layout is not None and layout.order == "arbitrary":
        return hostlist.compress(nodes)
    return hostlist.compress(sorted(set(nodes)))


def _memory(options: EffectiveOptions) -> Iterator[Field]:
    chosen = options.chosen
    per_node, per_cpu = chosen.get(o.MEM), chosen.get(o.MEM_PER_CPU)
    if per_node is not None:
        yield "memory_per_node", number(per_node)
    if per_cpu is not None:
        yield "memory_per_cpu", number(per_cpu)
    if (per_gpu := chosen.get(o.MEM_PER_GPU)) is not None:
        yield "memory_per_tres", f"gres/gpu:{per_gpu}"
    if (update := chosen.get(o.MEM_UPDATE)) is not None:
        yield "memory_update_margin", update.margin_percent
        yield "memory_update_delay", update.delay_min
    bindings = list(chosen.every(o.MEM_BIND))
    if bindings:
        types = [bindings[-1].kind] if bindings[-1].kind else []
        types += ["PREFER"] if any(binding.prefer for binding in bindings) else []
        types += ["VERBOSE"] if bindings[-1].verbose else []
        if types:
            yield "memory_binding_type", types
        if bindings[-1].numbers:
            yield "memory_binding", bindings[-1].one_per_task()


def _gres(options: EffectiveOptions) -> Iterator[Field]:
    chosen = options.chosen
    if cpus := chosen.get(o.CPUS_PER_GPU):
        yield "cpus_per_tres", f"gres/gpu:{cpus}"
    gres = chosen.get(o.GRES) or ""
    per_node = [_gpus(chosen.get(o.GPUS_PER_NODE)), "" if gres == "none" else gres]
    for key, value in (
        ("tres_per_job", _gpus(chosen.get(o.GPUS))),
        ("tres_per_node", ",".join(filter(None, per_node))),
        ("tres_per_socket", _gpus(chosen.get(o.GPUS_PER_SOCKET))),
        ("tres_per_task", options.per_task.tres),
        ("tres_bind", options.per_task.binding),
        ("tres_freq", f"gpu:{freq}" if (freq := chosen.get(o.GPU_FREQ)) else ""),
        ("licenses", ",".join(filter(None, (chosen.get(o.LICENSES), chosen.get(o.RESOURCES))))),
    ):
        if value:
            yield key, value


def _gpus(text: str | None) -> str:
    return ",".join(f"gres/gpu:{part}" for part in (text or "").split(",") if part)


def working_directory(options: EffectiveOptions, origin: ScriptOrigin) -> str:
    """Return the working directory, absolute."""
    return _absolute(options.chosen.get(o.CHDIR) or origin.directory, origin.directory)


def _files(options: EffectiveOptions, origin: ScriptOrigin) -> Iterator[Field]:
    directory = working_directory(options, origin)
    yield "current_working_directory", directory
    for option, key in (
        (o.OUTPUT, "standard_output"),
        (o.ERROR, "standard_error"),
        (o.INPUT, "standard_input"),
    ):
        file = options.chosen.get(option) or ("/dev/null" if option is o.INPUT else "")
        if file:
            yield key, _absolute(file, directory)


def _absolute(path: str, directory: str) -> str:
    return path if path.startswith("/") else f"{directory}/{path}"


def _when(options: EffectiveOptions, origin: ScriptOrigin) -> Iterator[Field]:
    chosen = options.chosen
    if begin := chosen.get(o.BEGIN):
        yield "begin_time", number(int(begin.at(origin.now).timestamp()))
    if deadline := chosen.get(o.DEADLINE):
        yield "deadline", int(deadline.at(origin.now).timestamp())
    for option, key in ((o.TIME, "time_limit"), (o.TIME_MIN, "time_minimum")):
        if (limit_min := chosen.get(option)) is not None:
            yield key, _duration(limit_min)
    if switches := chosen.get(o.SWITCHES):
        yield "required_switches", number(switches.switches)
        waits = [limit.wait_s for limit in chosen.every(o.SWITCHES) if limit.wait_s is not None]
        if waits and waits[-1] != UNLIMITED:
            yield "wait_for_switch", waits[-1]
    if chosen.has(o.HOLD):
        yield "priority", number(0)
    elif priority := chosen.get(o.PRIORITY):
        yield "priority", number(priority)


def _behaviour(options: EffectiveOptions) -> Iterator[Field]:
    chosen = options.chosen
    if sharing := chosen.last_of(o.EXCLUSIVE, o.OVERSUBSCRIBE):
        yield "shared", ["oversubscribe" if sharing.option is o.OVERSUBSCRIBE else sharing.value]
    if requeue := chosen.last_of(o.REQUEUE, o.NO_REQUEUE):
        yield "requeue", requeue.option is o.REQUEUE
    kills_step, mode = chosen.get(o.OOM_KILL_STEP), chosen.get(o.OPEN_MODE)
    yield "oom_kill_step", _UNSET_16 if kills_step is None else int(kills_step)
    layout, mail, profile = (
        chosen.get(o.DISTRIBUTION),
        chosen.get(o.MAIL_TYPE),
        chosen.get(o.PROFILE),
    )
    for key, value in (
        ("contiguous", chosen.get(o.CONTIGUOUS)),
        ("reboot", chosen.get(o.REBOOT)),
        ("kill_on_node_fail", False if chosen.get(o.NO_KILL) == "set" else None),
        ("wait_all_nodes", chosen.get(o.WAIT_ALL_NODES)),
        ("open_mode", [mode] if mode else None),
        ("mail_type", list(mail) if mail else None),
        ("profile", list(profile) if profile else None),
        ("distribution", str(layout) if layout else None),
    ):
        if value is not None:
            yield key, value
    yield from _signal(options)


def _signal(options: EffectiveOptions) -> Iterator[Field]:
    chosen = options.chosen
    signal = chosen.get(o.SIGNAL)
    if signal is None:
        return
    yield "kill_warning_signal", str(signal.number)
    yield "kill_warning_delay", number(signal.before_end_s)
    flags = ["BATCH_JOB"] * any(warning.to_batch for warning in chosen.every(o.SIGNAL))
    flags += ["RESERVATION_JOB"] * any(
        warning.for_reservation for warning in chosen.every(o.SIGNAL)
    )
    if flags:
        yield "kill_warning_flags", flags


def _flags(options: EffectiveOptions) -> Iterator[str]:
    chosen = options.chosen
    if options.counts.tasks_are_set:
        yield "EXACT_TASK_COUNT_REQUESTED"
    if options.per_task.cpus is not None:
        yield "EXACT_CPU_COUNT_REQUESTED"
    for option, flag in _FLAGS.items():
        if chosen.has(option):
            yield flag
    yield from chosen.get(o.GRES_FLAGS) or ()
    yield from sorted(set(chosen.every(o.KILL_ON_INVALID_DEP)))
    if "EXPEDITED_REQUEUE" in chosen.every(o.REQUEUE):
        yield "EXPEDITED_REQUEUE"


def number(value: int) -> dict[str, object]:
    """Return a number in slurmrestd's form for numbers that may be unset or infinite."""
    return {"set": True, "infinite": False, "number": value}


def _duration(minutes: int) -> dict[str, object]:
    return {"set": True, "infinite": True} if minutes == UNLIMITED else number(minutes)
