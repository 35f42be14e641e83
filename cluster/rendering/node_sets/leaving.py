"""What a worker does before its container ends, whoever ends it: it takes no more jobs, and waits for those it has."""

from typing import Final

from cluster.workers.situation import REASON_PREFIX

GRACE_S: Final = 86_400
"""How long a worker's jobs may go on after its pod is deleted, unless its template says so: a day."""
_AFTERWARDS_S: Final = 10
"""Of the grace, for what comes after the wait."""

_SCRIPT: Final = """\
node={node}
update() {{ timeout 15 scontrol update nodename="$node" "$@"; }}
update state=drain reason='{prefix}its pod is being deleted'
end=$(($(date +%s) + {wait_s}))
while [ "$(date +%s)" -lt "$end" ]; do
  if jobs=$(timeout 15 squeue --noheader --nodelist="$node" --states=CONFIGURING,RUNNING,SUSPENDED,COMPLETING); then
    [ -n "$jobs" ] || exit 0
  else
    grep -aqs '^slurmstepd: \\[' /proc/[0-9]*/cmdline || exit 0
  fi
  sleep 1
done
update state=down reason='{prefix}its pod was deleted before its jobs had ended'
"""
"""Slurm knows who has jobs. If it cannot be asked, the worker's own processes do: each step has a slurmstepd of that name."""


def script(grace_s: int, *, node: str = "") -> str:
    """Return the shell script.

    Args:
        grace_s: seconds after which the kubelet ends it.
        node: its name in Slurm, a host name; by default the container's host name.
    """
    wait_s = max(grace_s - _AFTERWARDS_S, 0)
    return _SCRIPT.format(prefix=REASON_PREFIX, wait_s=wait_s, node=node or "$(hostname)")
