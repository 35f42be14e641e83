"""All options of sbatch 26.05, each with the form of its value and how it is treated.

Source: `slurm_opt.c` (`common_options`) and sbatch(1). The documentation lists them in this order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, TypeAlias, TypeVar

from slurmjobs.script.getopt import Takes
from slurmjobs.script.values import choices, layout, lists, numbers, times
from slurmjobs.script.values.form import FILE, SHORT_TEXT, TEXT, ValueForm

T = TypeVar("T")


class Treatment(Enum):
    """How an option is treated."""

    SENT = "sent"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, eq=False)
class SbatchOption(Generic[T]):
    """One option of sbatch."""

    name: str
    letter: str = ""
    takes: Takes = Takes.VALUE
    form: ValueForm[T] | None = None
    """None if it never has a value."""
    treatment: Treatment = Treatment.SENT
    note: str = ""
    """Why it is refused or ignored, and what to do instead."""
    default: T | None = None
    """Its value if it is given without one."""
    sent_as: str = ""
    """The field of slurmrestd's request that gets the value as it is; "" if there is more to it."""

    @property
    def field(self) -> str:
        """Its name as a field beside a script: `cpusPerTask`."""
        first, *rest = self.name.split("-")
        return first + "".join(part.capitalize() for part in rest)


AnyOption: TypeAlias = SbatchOption[Any]


def _flag(name: str, letter: str = "") -> SbatchOption[bool]:
    return SbatchOption(name, letter, Takes.NOTHING, default=True)


def _refused(
    name: str, note: str, letter: str = "", takes: Takes = Takes.VALUE
) -> SbatchOption[str]:
    return SbatchOption(name, letter, takes, TEXT, Treatment.REFUSED, note, "")


def _ignored(
    name: str, note: str, letter: str = "", takes: Takes = Takes.NOTHING
) -> SbatchOption[str]:
    return SbatchOption(name, letter, takes, TEXT, Treatment.IGNORED, note, "")


ACCOUNT = SbatchOption("account", "A", form=TEXT, sent_as="account")
ACCTG_FREQ = SbatchOption("acctg-freq", form=lists.FREQUENCIES, sent_as="account_gather_frequency")
ARRAY = SbatchOption("array", "a", form=lists.ARRAY, sent_as="array")
BATCH = SbatchOption("batch", form=TEXT, sent_as="batch_features")
BB = SbatchOption("bb", form=TEXT, sent_as="burst_buffer")
BEGIN = SbatchOption("begin", "b", form=times.POINT_IN_TIME)
CHDIR = SbatchOption("chdir", "D", form=TEXT)
CLUSTER_CONSTRAINT = SbatchOption("cluster-constraint", form=TEXT, sent_as="cluster_constraint")
COMMENT = SbatchOption("comment", form=TEXT, sent_as="comment")
CONSOLIDATE_SEGMENTS = _flag("consolidate-segments")
CONSTRAINT = SbatchOption("constraint", "C", form=TEXT, sent_as="constraints")
CONTAINER = SbatchOption("container", form=TEXT, sent_as="container")
CONTAINER_ID = SbatchOption("container-id", form=TEXT, sent_as="container_id")
CONTAINER_TYPE = SbatchOption("container-type", form=TEXT, sent_as="container_type")
CONTEXT = SbatchOption("context", form=TEXT, sent_as="selinux_context")
CONTIGUOUS = _flag("contiguous")
CORE_SPEC = SbatchOption("core-spec", "S", form=numbers.NATURAL, sent_as="core_specification")
CORES_PER_SOCKET = SbatchOption("cores-per-socket", form=numbers.POSITIVE)
CPU_FREQ = SbatchOption("cpu-freq", form=layout.CPU_FREQUENCY, sent_as="cpu_frequency")
CPUS_PER_GPU = SbatchOption("cpus-per-gpu", form=numbers.POSITIVE)
CPUS_PER_TASK = SbatchOption("cpus-per-task", "c", form=numbers.POSITIVE)
DEADLINE = SbatchOption("deadline", form=times.POINT_IN_TIME)
DELAY_BOOT = SbatchOption("delay-boot", form=times.DURATION_S, sent_as="delay_boot")
DEPENDENCY = SbatchOption("dependency", "d", form=TEXT, sent_as="dependency")
DISTRIBUTION = SbatchOption("distribution", "m", form=layout.DISTRIBUTION)
ERROR = SbatchOption("error", "e", form=FILE)
EXCLUDE = SbatchOption("exclude", "x", form=lists.NODE_NAMES)
EXCLUSIVE = SbatchOption("exclusive", takes=Takes.PERHAPS, form=choices.SHARING, default="none")
EXPORT = SbatchOption("export", form=TEXT)
EXTRA = SbatchOption("extra", form=TEXT, sent_as="extra")
EXTRA_NODE_INFO = SbatchOption("extra-node-info", "B", form=numbers.NODE_SHAPE)
GET_USER_ENV = _flag("get-user-env")
GPU_BIND = SbatchOption("gpu-bind", form=layout.GPU_BINDING)
GPU_FREQ = SbatchOption("gpu-freq", form=layout.GPU_FREQUENCY)
GPUS = SbatchOption("gpus", "G", form=lists.GPUS)
GPUS_PER_NODE = SbatchOption("gpus-per-node", form=lists.GPUS)
GPUS_PER_SOCKET = SbatchOption("gpus-per-socket", form=lists.GPUS)
GPUS_PER_TASK = SbatchOption("gpus-per-task", form=lists.GPUS)
GRES = SbatchOption("gres", form=lists.GRES)
GRES_FLAGS = SbatchOption("gres-flags", form=choices.GRES_FLAGS)
HINT = SbatchOption("hint", form=choices.HINT)
HOLD = _flag("hold", "H")
IGNORE_PBS = _flag("ignore-pbs")
INPUT = SbatchOption("input", "i", form=FILE)
JOB_NAME = SbatchOption("job-name", "J", form=TEXT)
KILL_ON_INVALID_DEP = SbatchOption("kill-on-invalid-dep", form=choices.YES_NO)
LICENSES = SbatchOption("licenses", "L", form=TEXT)
MAIL_TYPE = SbatchOption("mail-type", form=choices.MAIL)
MAIL_USER = SbatchOption("mail-user", form=TEXT, sent_as="mail_user")
MCS_LABEL = SbatchOption("mcs-label", form=TEXT, sent_as="mcs_label")
MEM = SbatchOption("mem", form=numbers.MEMORY_MIB)
MEM_BIND = SbatchOption("mem-bind", form=layout.MEMORY_BINDING)
MEM_PER_CPU = SbatchOption("mem-per-cpu", form=numbers.MEMORY_MIB)
MEM_PER_GPU = SbatchOption("mem-per-gpu", form=numbers.MEMORY_MIB)
MEM_UPDATE = SbatchOption("mem-update", form=times.MEMORY_UPDATE)
MINCPUS = SbatchOption("mincpus", form=numbers.POSITIVE)
NETWORK = SbatchOption("network", form=TEXT, sent_as="network")
NICE = SbatchOption("nice", takes=Takes.PERHAPS, form=numbers.NICE, default=100, sent_as="nice")
NO_KILL = SbatchOption("no-kill", "k", Takes.PERHAPS, choices.SET_OFF, default="set")
NO_REQUEUE = _flag("no-requeue")
NODELIST = SbatchOption("nodelist", "w", form=lists.NAMED_NODES)
NODES = SbatchOption("nodes", "N", form=numbers.NODES)
NTASKS = SbatchOption("ntasks", "n", form=numbers.POSITIVE)
NTASKS_PER_CORE = SbatchOption("ntasks-per-core", form=numbers.POSITIVE)
NTASKS_PER_GPU = SbatchOption("ntasks-per-gpu", form=numbers.POSITIVE)
NTASKS_PER_NODE = SbatchOption("ntasks-per-node", form=numbers.POSITIVE)
NTASKS_PER_SOCKET = SbatchOption(
    "ntasks-per-socket", form=numbers.POSITIVE, sent_as="tasks_per_socket"
)
NTASKS_PER_TRES = SbatchOption("ntasks-per-tres", form=numbers.POSITIVE)
OOM_KILL_STEP = SbatchOption("oom-kill-step", takes=Takes.PERHAPS, form=numbers.BIT, default=True)
OPEN_MODE = SbatchOption("open-mode", form=choices.OPEN_MODE)
OUTPUT = SbatchOption("output", "o", form=FILE)
OVERCOMMIT = _flag("overcommit", "O")
OVERSUBSCRIBE = _flag("oversubscribe", "s")
PARTITION = SbatchOption("partition", "p", form=TEXT, sent_as="partition")
PREFER = SbatchOption("prefer", form=TEXT, sent_as="prefer")
PRIORITY = SbatchOption("priority", form=numbers.PRIORITY)
PROFILE = SbatchOption("profile", form=choices.PROFILE)
PROPAGATE = SbatchOption(
    "propagate", takes=Takes.PERHAPS, form=lists.LIMIT_NAMES, default=lists.LIMITS
)
QOS = SbatchOption("qos", "q", form=TEXT, sent_as="qos")
REBOOT = _flag("reboot")
REQUEUE = SbatchOption("requeue", takes=Takes.PERHAPS, form=choices.EXPEDITE, default="")
RESERVATION = SbatchOption("reservation", form=TEXT, sent_as="reservation")
RESOURCES = SbatchOption("resources", form=TEXT)
SEGMENT = SbatchOption("segment", form=numbers.SHORT, sent_as="segment_size")
SIGNAL = SbatchOption("signal", form=choices.SIGNAL)
SOCKETS_PER_NODE = SbatchOption("sockets-per-node", form=numbers.POSITIVE)
SPREAD_JOB = _flag("spread-job")
SPREAD_SEGMENTS = _flag("spread-segments")
STEPMGR = _flag("stepmgr")
SWITCHES = SbatchOption("switches", form=times.SWITCHES)
TASKS_PER_NODE = SbatchOption("tasks-per-node", form=numbers.POSITIVE)
THREAD_SPEC = SbatchOption("thread-spec", form=numbers.POSITIVE, sent_as="thread_specification")
THREADS_PER_CORE = SbatchOption("threads-per-core", form=numbers.POSITIVE)
TIME = SbatchOption("time", "t", form=times.LIMIT_MIN)
TIME_MIN = SbatchOption("time-min", form=times.LIMIT_MIN)
TMP = SbatchOption("tmp", form=numbers.MEMORY_MIB, sent_as="temporary_disk_per_node")
TRES_BIND = SbatchOption("tres-bind", form=layout.TRES_BINDING)
TRES_PER_TASK = SbatchOption("tres-per-task", form=SHORT_TEXT)
USE_MIN_NODES = _flag("use-min-nodes")
WAIT_ALL_NODES = SbatchOption("wait-all-nodes", form=numbers.BIT)
WCKEY = SbatchOption("wckey", form=TEXT, sent_as="wckey")

_ENDS_SBATCH = "sbatch would print something and submit no job"
_EARLY = "sbatch reads it on its command line only"
_CLUSTER = "slurm-bridge submits to its own cluster only"
_WHOSE = "slurm-bridge's policy decides whose job it is"

OPTIONS: Final[Sequence[AnyOption]] = (
    *(value for value in tuple(globals().values()) if isinstance(value, SbatchOption)),
    _refused("autocomplete", _ENDS_SBATCH),
    _refused(
        "bbf", "the file is on the submitting host: use --bb, or write its lines into the script"
    ),
    _refused("cluster", _CLUSTER),
    _refused("clusters", _CLUSTER, "M"),
    _refused("export-file", "the file is on the submitting host: use --export=NAME=VALUE"),
    _refused("external", "an external job has no script", takes=Takes.NOTHING),
    _refused("gid", _WHOSE),
    _ignored("help", _EARLY, "h"),
    _refused("nodefile", "the file is on the submitting host: use --nodelist", "F"),
    _ignored("parsable", "it only makes sbatch print less"),
    _ignored("quiet", _EARLY, "Q"),
    _refused("resv-ports", "slurmrestd has no field for it", takes=Takes.PERHAPS),
    _refused("test-only", "sbatch would submit no job", takes=Takes.NOTHING),
    _refused("uid", _WHOSE),
    _ignored("usage", _EARLY),
    _ignored("verbose", _EARLY, "v"),
    _ignored("version", _EARLY, "V"),
    _ignored("wait", "it only makes sbatch wait for the end of the job", "W"),
    _ignored("wrap", _EARLY, takes=Takes.VALUE),
)

UMASK = SbatchOption("umask", form=numbers.UMASK)
"""Not an option of sbatch: `#PBS -W umask=` becomes this."""

BY_FIELD: Final = {option.field: option for option in OPTIONS}
"""Options by their names as fields beside a script."""


def as_stored(name: str, value: str | bool) -> str | bool:  # noqa: FBT001  # a value of an option
    """Return a value as objects store it: "" for an option without its optional value."""
    option = BY_FIELD.get(name)
    is_optional = option is not None and option.takes is Takes.PERHAPS
    return "" if is_optional and value is True else value
