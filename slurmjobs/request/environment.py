"""Compute the environment that sbatch sends with a job.

slurmd and srun read much of it: without SLURM_NTASKS_PER_NODE, slurmd does not compute SLURM_NTASKS. Sources: `set_envs`
and `_opt_verify` of sbatch's `opt.c`, `set_env_from_opts` and `env_merge_filter` of Slurm's `env.c`, `sbatch.c`.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from slurmjobs.request.origin import ScriptOrigin
from slurmjobs.request.settled import EffectiveOptions, tasks_per_node
from slurmjobs.script import options as o
from slurmjobs.script.option_values import OptionValues

_LAUNCHERS: Final = {
    "OMPI_MCA_plm_slurm_args": "--external-launcher",
    "PRTE_MCA_plm_slurm_args": "--external-launcher",
}
_HYDRA: Final = {
    "HYDRA_BOOTSTRAP": "HYDRA_LAUNCHER_EXTRA_ARGS",
    "I_MPI_HYDRA_BOOTSTRAP": "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
}

_CONTAINERS: Final = {
    o.CONTAINER: "SLURM_CONTAINER",
    o.CONTAINER_ID: "SLURM_CONTAINER_ID",
    o.CONTAINER_TYPE: "SLURM_CONTAINER_TYPE",
}


def environment(options: EffectiveOptions, origin: ScriptOrigin) -> Mapping[str, str]:
    """Return the variables, sorted by name."""
    chosen = options.chosen
    process = {**origin.environment, **dict(_process_variables(chosen, origin))}
    variables = _export(chosen.get(o.EXPORT), process)
    export = chosen.get(o.EXPORT)
    loads_login = export is not None and export.lower() not in {"all", "nil"}
    if chosen.has(o.GET_USER_ENV) or loads_login:
        variables["SLURM_GET_USER_ENV"] = "1"
    variables.update(_option_variables(options))
    for name, value in _LAUNCHERS.items():
        variables.setdefault(name, value)
    for name, extra in _HYDRA.items():
        if process.get(name, "slurm") == "slurm":
            variables.setdefault(name, "slurm")
            variables.setdefault(extra, "--external-launcher")
    return dict(sorted(variables.items()))


def _process_variables(chosen: OptionValues, origin: ScriptOrigin) -> Iterator[tuple[str, str]]:
    """Yield the variables that sbatch sets in its own environment before exporting it.

    Not its host and its limits: a SlurmJob has none to pass on.
    """
    if origin.nice is not None:
        yield "SLURM_PRIO_PROCESS", str(origin.nice)
    yield "SLURM_SUBMIT_DIR", origin.directory
    mask = chosen.get(o.UMASK)
    umask = int(mask, 8) if mask is not None else origin.umask
    if umask is not None:
        yield "SLURM_UMASK", f"0{umask:03o}"
    for option, name in _CONTAINERS.items():
        if (value := chosen.get(option)) is not None and name not in origin.environment:
            yield name, value
    if dependency := chosen.get(o.DEPENDENCY):
        yield "SLURM_JOB_DEPENDENCY", dependency
    if hint := chosen.get(o.HINT):
        yield "SLURM_HINT", hint.text
    export = chosen.get(o.EXPORT)
    if export is not None and export.lower() != "all":
        yield "SLURM_EXPORT_ENV", origin.environment.get("SLURM_EXPORT_ENV", export)


def _export(export: str | None, process: Mapping[str, str]) -> dict[str, str]:
    match (export or "all").lower():
        case "all":
            return dict(process)
        case "nil" | "none":
            variables: dict[str, str] = {}
        case _:
            variables = {}
            for part in _parts(export or ""):
                name, equals, value = part.partition("=")
                if part.lower() == "all":
                    variables.update(process)
                elif equals:
                    variables[name] = value
                elif name in process:
                    variables[name] = process[name]
    ours = ("SLURM", "_SLURM_SPANK_OPTION_")
    variables.update((name, value) for name, value in process.items() if name.startswith(ours))
    return variables


def _parts(text: str) -> Iterator[str]:
    """Split a list at commas outside quotes, and strip quotes around a whole part."""
    part, quote = "", ""
    for character in f"{text},":
        if character == "," and not quote:
            if part:
                is_quoted = len(part) > 1 and part[0] in "\"'" and part[0] == part[-1]
                yield part[1:-1] if is_quoted else part
            part = ""
            continue
        if character in "\"'" and quote in {"", character}:
            quote = "" if quote else character
        part += character


def _option_variables(options: EffectiveOptions) -> Iterator[tuple[str, str]]:
    chosen, counts = options.chosen, options.counts
    layout = chosen.get(o.DISTRIBUTION)
    per_tres = chosen.get(o.NTASKS_PER_TRES)
    tasks = counts.tasks if counts.tasks_are_set else None
    for name, value in (
        ("SLURM_CPUS_PER_GPU", chosen.get(o.CPUS_PER_GPU)),
        ("SLURM_GPUS", chosen.get(o.GPUS)),
        ("SLURM_GPU_FREQ", chosen.get(o.GPU_FREQ)),
        ("SLURM_GPUS_PER_NODE", chosen.get(o.GPUS_PER_NODE)),
        ("SLURM_GPUS_PER_SOCKET", chosen.get(o.GPUS_PER_SOCKET)),
        ("SLURM_MEM_PER_GPU", chosen.get(o.MEM_PER_GPU)),
        ("SLURM_TRES_PER_TASK", options.per_task.tres or None),
        ("SLURM_TRES_BIND", options.per_task.binding or None),
        ("SLURM_CPUS_PER_TASK", options.per_task.cpus),
        ("SLURM_NPROCS", tasks),
        ("SLURM_NTASKS", tasks),
        ("SLURM_NTASKS_PER_CORE", options.tasks_per_core),
        ("SLURM_NTASKS_PER_TRES", per_tres),
        ("SLURM_NTASKS_PER_GPU", chosen.get(o.NTASKS_PER_GPU) if per_tres is None else None),
        ("SLURM_NTASKS_PER_NODE", tasks_per_node(chosen)),
        ("SLURM_NTASKS_PER_SOCKET", chosen.get(o.NTASKS_PER_SOCKET)),
        ("SLURM_THREADS_PER_CORE", options.shape.threads),
        ("SLURM_DIST_PLANESIZE", layout.plane_size if layout else None),
    ):
        if value is not None:
            yield name, str(value)
    if layout is not None:
        order = "plane" if layout.plane_size is not None else layout.order
        yield "SLURM_DISTRIBUTION", ",".join(filter(None, (order, layout.packing)))
        if layout.order == "arbitrary":
            yield "SLURM_ARBITRARY_NODELIST", chosen.get(o.NODELIST) or ""
    yield from _memory_binding(chosen)


def _memory_binding(chosen: OptionValues) -> Iterator[tuple[str, str]]:
    binding = chosen.get(o.MEM_BIND)
    if binding is None or not binding.words():
        return
    numbers = f":{binding.one_per_task()}" if binding.numbers else ""
    yield "SLURM_MEM_BIND", ",".join(binding.words()) + numbers
    yield "SLURM_MEM_BIND_VERBOSE", "verbose" if binding.verbose else "quiet"
