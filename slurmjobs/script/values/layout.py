"""Values about the layout of tasks: distribution over nodes, binding to memory and GPUs, frequencies.

Sources: `verify_dist_type` of Slurm's `proc_args.c`, `slurm_verify_mem_bind`, `tres_bind_verify_cmdline`,
`tres_freq_verify_cmdline`, `cpu_freq_verify_cmdline`.
"""

import re
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from slurmjobs.script.values.form import LONGEST_VALUE, UnreadableValue, ValueForm, matching
from slurmjobs.script.values.numbers import INT_MAX


@dataclass(frozen=True, slots=True)
class TaskDistribution:
    """Distribution of tasks over nodes, sockets and cores."""

    order: str = ""
    """`block`, `cyclic:block`, `arbitrary`, `plane`; "" for Slurm's default."""
    packing: str = ""
    """`pack`, `nopack` or ""."""
    plane_size: int | None = None

    @override
    def __str__(self) -> str:
        if self.plane_size is not None:
            return f"plane={self.plane_size}"
        return ",".join(part for part in (self.order, self.packing) if part)


_PLANE = re.compile(r"plane[^=]*=[ \t\n\v\f\r]*\+?([0-9]{1,10})", re.IGNORECASE)
_DIRECTIONS: Final = ("block", "cyclic", "fcyclic")


def _distribution(text: str) -> TaskDistribution:
    if text.lower().startswith("plane"):
        match = _PLANE.fullmatch(text)
        if match is None or not 0 < int(match[1]) <= INT_MAX:
            raise UnreadableValue("plane needs a size")
        return TaskDistribution(order="plane", plane_size=int(match[1]))
    base, _, packing = text.lower().partition(",")
    if base in {"pack", "nopack"} and not packing:
        return TaskDistribution(packing=base)
    if packing not in {"", "pack", "nopack"}:
        raise UnreadableValue("only pack and nopack may follow the comma")
    return TaskDistribution(_order(base), packing)


def _order(text: str) -> str:
    if text in {"arbitrary", "hostfile"}:
        return "arbitrary"
    parts = [part for part in text.split(":") if part]
    if not 1 <= len(parts) <= len(_DIRECTIONS):
        raise UnreadableValue("it does not have one to three parts")
    defaults = ("block", "cyclic", parts[1] if len(parts) > 1 and parts[1] != "*" else "cyclic")
    order = [
        default if part == "*" else part for part, default in zip(parts, defaults, strict=False)
    ]
    if order[0] not in _DIRECTIONS[:2] or any(part not in _DIRECTIONS for part in order):
        raise UnreadableValue("the distribution is unknown")
    return ":".join(order)


DISTRIBUTION = ValueForm(
    "plane=size, arbitrary, or block|cyclic|*[:block|cyclic|fcyclic|*[:…]][,pack|nopack]",
    _distribution,
)


@dataclass(frozen=True, slots=True)
class MemoryBinding:
    """Binding of tasks to memory."""

    kind: str = ""
    """`NONE`, `RANK`, `LOCAL`, `MAP`, `MASK` or ""."""
    numbers: str = ""
    """For MAP and MASK: one number per task, or `number*tasks`."""
    prefer: bool = False
    verbose: bool = False

    def words(self) -> tuple[str, ...]:
        """Return the binding in sbatch's words and order."""
        kinds = {"MAP": "map_mem", "MASK": "mask_mem"}
        kind = kinds.get(self.kind, self.kind.lower())
        return tuple(
            word for word in ("verbose" * self.verbose, "prefer" * self.prefer, kind) if word
        )

    def one_per_task(self) -> str:
        """Write `1*3,2` as `1,1,1,2`."""
        parts = (part.partition("*") for part in filter(None, self.numbers.split(",")))
        return ",".join(number for number, _, times in parts for _ in range(int(times or 1)))


_NUMBERS = {
    "MAP": re.compile(r"([0-9]{1,9})(?:\*([0-9]{1,4}))?"),
    "MASK": re.compile(r"(?:0x)?([0-9a-fA-F]{1,64})(?:\*([0-9]{1,4}))?"),
}
_MAP = re.compile(r"(map|mask)_?mem[^:=]*[:=](.+)", re.IGNORECASE)
_MOST_NUMBERS: Final = 10_000
_MOST_CHARACTERS: Final = 64 * 1024
"""Characters of all numbers together."""


def _memory_binding(text: str) -> MemoryBinding:
    kind, numbers, prefer, verbose = "", "", False, False
    for word in re.split(r",(?!(?:[0-9]|[0-9a-fA-F]*(?:,|$)))", text):
        match word.lower():
            case "p" | "prefer":
                prefer = True
            case "q" | "quiet":
                verbose = False
            case "v" | "verbose":
                verbose = True
            case "no" | "none":
                kind, numbers = "NONE", ""
            case "rank" | "local":
                kind, numbers = word.upper(), ""
            case _:
                match = _MAP.fullmatch(word)
                if match is None:
                    raise UnreadableValue(f"{word!r} is unknown")
                kind = match[1].upper()
                numbers = _check_numbers(kind, match[2])
    return MemoryBinding(kind, numbers, prefer, verbose)


def _check_numbers(kind: str, text: str) -> str:
    """Check a list such as `1*3,2` and the size of what it expands to."""
    numbers: list[str] = []
    count = characters = 0
    for part in filter(None, text.split(",")):
        match = _NUMBERS[kind].fullmatch(part)
        times = int(match[2] or 1) if match else 0
        if match is None or not times:
            raise UnreadableValue(f"{part!r} is not a number")
        numbers.append(match[1] if times == 1 else f"{match[1]}*{times}")
        count += times
        characters += times * len(match[1])
        if count > _MOST_NUMBERS or characters > _MOST_CHARACTERS:
            raise UnreadableValue(
                f"it has more than {_MOST_NUMBERS} numbers, or more than {_MOST_CHARACTERS} characters in all"
            )
    if not numbers:
        raise UnreadableValue("the list is empty")
    return ",".join(numbers)


MEMORY_BINDING = ValueForm(
    "a list of none, rank, local, map_mem:numbers, mask_mem:masks, prefer, quiet, verbose",
    _memory_binding,
    longest=LONGEST_VALUE,
)

_HOW = "[verbose,] closest, none, map:list, mask:list, per_task:count or single:count"
GPU_BINDING = matching(
    _HOW,
    r"(?:verbose,)?(?:closest.*|none.*|(?:map|map_gpu):[0-9*]+(?:,[0-9*]+)*"
    r"|(?:mask|mask_gpu):(?:0x)?[0-9a-f*]+(?:,(?:0x)?[0-9a-f*]+)*|(?:per_task|single):.*)",
    "the binding is unknown",
)


def _tres_binding(text: str) -> str:
    for part in filter(None, text.split("+")):
        name, colon, binding = part.partition(":")
        if not name.startswith("gres/") or not colon:
            raise UnreadableValue("a part is not gres/name:binding")
        GPU_BINDING.read(binding)
    return text


TRES_BINDING = ValueForm(
    f"gres/name:binding, several joined by +; a binding is {_HOW}", _tres_binding
)

_FREQUENCY = "(?:(?:memory=)?(?:[0-9]{1,9}|low|medium|high|highm1)|verbose)"
GPU_FREQUENCY = matching(
    "a list of MHz, low, medium, high, highm1, memory=… and verbose",
    f"{_FREQUENCY}(?:,{_FREQUENCY})*",
    "the frequency is unknown",
)

_GOVERNORS: Final = ("co", "perf", "pow", "user", "onde", "sche")
_LEVELS: Final = ("lo", "him1", "highm1", "hi", "med")


def _cpu_frequency(text: str) -> str:
    span, colon, governor = text.partition(":")
    low, dash, high = span.partition("-")
    if colon and not governor.lower().startswith(_GOVERNORS):
        raise UnreadableValue(f"governor {governor!r} is unknown")
    if low.lower().startswith(_GOVERNORS):
        if colon or dash:
            raise UnreadableValue("a governor goes alone or after a colon")
        return text
    for part in (low, *([high] if dash else [])):
        if not (part.lower().startswith(_LEVELS) or re.fullmatch(r"[0-9]{1,9}", part)):
            raise UnreadableValue(f"frequency {part!r} is unknown")
    if dash and not colon:
        raise UnreadableValue("a range needs a governor after a colon")
    return text


CPU_FREQUENCY = ValueForm(
    "low, medium, high, highm1 or kHz, a range low-high:governor, or a governor", _cpu_frequency
)
