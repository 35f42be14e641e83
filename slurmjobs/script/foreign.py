"""Translate the headers of other batch systems, `#PBS` and `#BSUB`, into sbatch's options.

sbatch does so by itself unless `--ignore-pbs` is given. Source: `xlate.c` of sbatch, and its man page, which
do not cover all of either language. What sbatch ignores silently is ignored here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from slurmjobs.script import directives, getopt, options
from slurmjobs.script.directives import where
from slurmjobs.script.getopt import NoOption, Takes
from slurmjobs.script.options import AnyOption
from slurmjobs.script.words import HeaderWord
from slurmruntime.values.faults import Fault

OptionTranslation = tuple[AnyOption, str | None, int]
"""An option of sbatch, the text of its value, and the line it was translated from."""


@dataclass(slots=True)
class HeaderTranslation:
    """A foreign header in sbatch's options."""

    options: list[OptionTranslation] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Name:
    letter: str
    name: str
    option: AnyOption | None = None
    """None if it is ignored, or if there is more to it."""
    takes: Takes = Takes.VALUE


_BSUB: Final = (
    _Name("c", "cwd", options.CHDIR),
    _Name("e", "error_file", options.ERROR),
    _Name("J", "job_name", options.JOB_NAME),
    _Name("m", "hostname", options.NODELIST),
    _Name("M", "memory_limit", options.MEM_PER_CPU),
    _Name("n", "", options.NTASKS),
    _Name("o", "output_file", options.OUTPUT),
    _Name("q", "queue_name", options.PARTITION),
    _Name("W", "time", options.TIME),
    _Name("x", "exclusive", options.EXCLUSIVE, Takes.NOTHING),
)


def bsub(script: str) -> HeaderTranslation | None:
    """Translate the lines that begin with `#BSUB`; return None if there are none."""
    words = directives.foreign(script, "#BSUB")
    if words is None:
        return None
    # A long name with one dash, in a position where an option may be.
    renamed = [
        HeaderWord("-c", word.line) if word.text == "-cwd" and place % 2 == 0 else word
        for place, word in enumerate(words.words)
    ]
    result = HeaderTranslation(faults=words.faults)
    for name, value, line in _parse(renamed, _BSUB, result):
        if name.option is not None:
            text = None if name.letter == "x" else _bsub_value(name.letter, value)
            result.options.append((name.option, text, line))
    return result


def _bsub_value(letter: str, value: str) -> str:
    match letter:
        case "m":
            return value.replace(" ", ",")
        case "M" if value[-1:].isdecimal():
            return f"{value}K"  # LSF counts memory in KiB
        case "n":
            return value.partition(",")[2] or value
        case _:
            return value


_PBS: Final = (
    _Name("a", "start_time", options.BEGIN),
    _Name("A", "account", options.ACCOUNT),
    _Name("c", "checkpoint"),
    _Name("C", "working_dir"),
    _Name("d", "", options.CHDIR),
    _Name("e", "error", options.ERROR),
    _Name("h", "hold", options.HOLD, Takes.NOTHING),
    _Name("I", "interactive", takes=Takes.NOTHING),
    _Name("j", "join"),
    _Name("J", "job_array", options.ARRAY),
    _Name("k", "keep"),
    _Name("l", "resource_list"),
    _Name("m", "mail_options"),
    _Name("M", "mail_user_list", options.MAIL_USER),
    _Name("N", "job_name", options.JOB_NAME),
    _Name("o", "out", options.OUTPUT),
    _Name("p", "priority", options.NICE),
    _Name("q", "destination", options.PARTITION),
    _Name("r", "rerunable"),
    _Name("S", "script_path"),
    _Name("t", "array", options.ARRAY),
    _Name("u", "running_user"),
    _Name("v", "variable_list"),
    _Name("V", "all_env", takes=Takes.NOTHING),
    _Name("W", "attributes"),
    _Name("w", "", options.CHDIR),
    _Name("z", "no_std", takes=Takes.NOTHING),
)
_MAIL: Final = (("b", "BEGIN"), ("e", "END"), ("a", "FAIL"))


def pbs(script: str) -> HeaderTranslation | None:
    """Translate the lines that begin with `#PBS`; return None if there are none."""
    words = directives.foreign(script, "#PBS")
    if words is None:
        return None
    result = HeaderTranslation(faults=words.faults)
    exported: list[tuple[str, int]] = []
    for name, value, line in _parse(words.words, _PBS, result):
        translated: Iterable[tuple[AnyOption, str | None]] = ()
        match name.letter:
            case "l":
                translated = _resources(value)
            case "m":
                translated = [(options.MAIL_TYPE, _mail(value.lower()))]
            case "v":
                exported.append((value, line))
            case "W" if value.lower().startswith("umask="):
                translated = [(options.UMASK, value[6:])]
            case "W" if value.lower().startswith("depend="):
                translated = [(options.DEPENDENCY, value[7:])]
            case _ if name.option is not None:
                translated = [(name.option, value or None)]
            case _:
                pass
        result.options += [(option, text, line) for option, text in translated]
    if exported:
        names = ",".join(value for value, _ in exported)
        result.options.append((options.EXPORT, names, exported[-1][1]))
    return result


def _parse(
    words: Sequence[HeaderWord], names: Sequence[_Name], result: HeaderTranslation
) -> Iterator[tuple[_Name, str, int]]:
    for parsed in getopt.parse(words, names):
        if isinstance(parsed, NoOption):
            message = parsed.message.replace("sbatch has no option", "sbatch does not translate")
            result.faults.append(Fault(where(parsed.line), message))
        else:
            yield names[parsed.index], parsed.value or "", parsed.line


def _mail(letters: str) -> str:
    if "n" in letters:
        return "NONE"
    return ",".join(word for letter, word in _MAIL if letter in letters)


def _resources(text: str) -> Iterator[tuple[AnyOption, str | None]]:
    """Translate a list of resources: `nodes=2:ppn=4,walltime=1:00:00`, `select=2:ncpus=8`."""
    gpus = 0
    pbs_pro: dict[str, str] = {}
    for name, value in _RESOURCE.findall(_protect_nodes(text)):
        key = name.lower()
        if key == "accelerator":
            gpus = max(gpus, int(value.lower().startswith("true")))
        elif key == "naccelerators":
            gpus = int(value) if re.fullmatch(r"[0-9]{1,9}", value) else 0
        elif key == "nodes":
            yield from _nodes(value.replace(_INNER, ":"))
        elif key in _PRO:
            pbs_pro[key] = value
            yield _PRO[key], value
        elif key in _RESOURCES:
            # Torque writes 2gb for 2G.
            is_amount = key in {"mem", "file"} and value[-1:] in {"b", "B"}
            yield _RESOURCES[key], value[:-1] if is_amount else value
    yield from _cpus_of_tasks(pbs_pro)
    if gpus > 0:
        yield options.GRES, f"gpu:{gpus}"


def _cpus_of_tasks(pbs_pro: Mapping[str, str]) -> Iterator[tuple[AnyOption, str | None]]:
    """Divide a node's CPUs among its tasks, if both are given as PBS Pro gives them."""
    if set(pbs_pro) == set(_PRO) and all(
        re.fullmatch(r"[0-9]{1,9}", count) for count in pbs_pro.values()
    ):
        cpus, tasks = int(pbs_pro["ncpus"]), int(pbs_pro["mpiprocs"])
        if 0 < tasks < cpus:
            yield options.CPUS_PER_TASK, str(cpus // tasks)


_RESOURCES: Final[Mapping[str, AnyOption]] = {
    "walltime": options.TIME,
    "cput": options.TIME,
    "pcput": options.TIME,
    "mem": options.MEM,
    "file": options.TMP,
    "nice": options.NICE,
    "proc": options.CONSTRAINT,
}
_PRO: Final[Mapping[str, AnyOption]] = {
    "select": options.NODES,
    "ncpus": options.MINCPUS,
    "mpiprocs": options.NTASKS_PER_NODE,
}
_INNER: Final = "\0"
_RESOURCE: Final = re.compile(r"(?<!\w)(\w++)=((?:[^,:]|:(?!\w++=))*+)")


def _protect_nodes(text: str) -> str:
    """Keep the parts of `nodes=…`, which colons separate, together."""
    return re.sub(r"nodes=[^,]*", lambda match: match[0].replace(":", _INNER), text)


def _nodes(text: str) -> Iterator[tuple[AnyOption, str | None]]:
    """Translate `2:ppn=4`, `node1+node2`, `1:gpus=2`."""
    count = tasks = 0
    names: list[str] = []
    for part in filter(None, re.split(r"[+:]", text)):
        if part.startswith("gpus="):
            yield options.GPUS_PER_NODE, part[5:]
        elif match := re.match(r"ppn=([0-9]{1,9})", part):
            tasks += int(match[1])
        elif match := re.match(r"[0-9]{1,9}", part):
            count += int(match[0])
        elif part[0].isalpha():
            names.append(part)
    if count:
        yield options.NODES, str(count)
    if tasks:
        yield options.NTASKS, str(tasks * max(count, 1))
    if names:
        yield options.NODELIST, ",".join(names)
