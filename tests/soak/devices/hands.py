"""Who holds a device, as those say who hold it: each container and each job locks a file of its node for every device it has.

The kernel keeps a lock until the last process that has it is dead, so a device in two hands is seen at
the very instant at which the second one begins, from inside both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.client import Sandbox
from tests.realnodes.claimants import TOLD

FOLDER = "/var/lib/kubelet/hands"
"""Of each node: a file for every device, what was held, and what was held twice."""
INSIDE = "/host"
"""The same folder in a container."""
_LOG, _TWICE = "held", "twice"
_OF_CONTAINER = f"{TOLD} | grep -o 'device-[0-9]*' | sort -u"
_OF_JOB = r"""echo "$SLURM_JOB_GPUS" | tr , '\n' | sed 's/^.$/0&/; s/^/device-/'"""
_LOCK = "{folder}/loader --library-path {folder} {folder}/flock"
"""The node's own flock, with its libraries: busybox has none."""
TAKEN = "1"
"""What flock ends with if somebody else has the lock; anything else means that it could not try."""
_SCRIPT = """\
cd {folder}; name={name} found=$({devices} | tr '\\n' ' ') fd=3
for device in $found; do
  eval "exec $fd>>$device"
  {lock} -n $fd || echo "$name $device $? $(tail -n 1 $device)" >> twice
  echo $name >&$fd; fd=$((fd + 1))
done
cpus=$(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status)
echo "$name $cpus $found" >> held
sleep {seconds}; exit {code}
"""
"""Every file descriptor stays open in what the shell starts. A shell of a container knows no larger ones than 9."""


@dataclass(frozen=True, slots=True)
class Held:
    """What one of them found itself to have."""

    name: str
    cpus: str
    """The processors it may use: `0-1`."""
    devices: tuple[str, ...]


def of_container(name: str, seconds: float, code: int) -> str:
    """Return the script of a container that holds what its claim was given."""
    return _script(INSIDE, name, _OF_CONTAINER, seconds, code)


def of_job(name: str, seconds: float, code: int) -> str:
    """Return the script of a batch job that holds what slurmd gave it."""
    return _script(FOLDER, name, _OF_JOB, seconds, code)


def of_thief(name: str, devices: Sequence[str]) -> str:
    """Return the script of somebody on the node who takes devices without asking."""
    return _script(FOLDER, name, f"printf '%s\\n' {' '.join(devices)}", 0, 0)


def _script(folder: str, name: str, devices: str, seconds: float, code: int) -> str:
    lock = _LOCK.format(folder=folder)
    return _SCRIPT.format(
        folder=folder, name=name, devices=devices, lock=lock, seconds=seconds, code=code
    )


def prepare(sandbox: Sandbox, node: str) -> None:
    """Begin anew on a node."""
    script = (
        f"rm -rf {FOLDER}; mkdir -p {FOLDER}; cd {FOLDER}; touch {_LOG} {_TWICE};"
        " cp /lib*/ld-linux*.so.* loader; cp /usr/bin/flock .;"
        " cp $(./loader --list ./flock | sed -n '/loader/!s/.*=> \\([^ ]*\\).*/\\1/p') ."
    )
    sandbox.on_node(node, "sh", "-c", script)


def held(sandbox: Sandbox, node: str) -> Sequence[Held]:
    """What was held on a node, in the order in which it began."""
    lines = sandbox.on_node(node, "cat", f"{FOLDER}/{_LOG}").splitlines()
    return [read(line) for line in lines]


def twice(sandbox: Sandbox, node: str) -> Sequence[str]:
    """Who found a device held by another one, the device, flock's exit code, and who had it last."""
    return sandbox.on_node(node, "cat", f"{FOLDER}/{_TWICE}").splitlines()


def read(line: str) -> Held:
    """Read a line of the log."""
    name, cpus, *devices = line.split()
    return Held(name, cpus, tuple(devices))
