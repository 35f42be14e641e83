"""preStop hook of a worker: drain the node and wait for its jobs, whatever the reason for its end."""

from typing import Final

from slurmoperator.workers.situation import REASON_PREFIX

GRACE_S: Final = 86_400
"""Default grace period, a day: how long a worker's jobs may continue after its pod is deleted."""
_AFTERWARDS_S: Final = 10
"""Part of the grace period that is reserved for what follows the wait."""

_SCRIPT: Final = """\
node={node}
update() {{ timeout 15 scontrol update nodename="$node" "$@"; }}
has_processes() {{
  for step in $(grep -als '^slurmstepd: \\[' /proc/[0-9]*/cmdline); do
    grep -aqs '^slurmstepd: \\[[^]]*extern\\]' "$step" && continue
    step=${{step#/proc/}}; step=${{step%/cmdline}}
    for child in $(grep -ls "^PPid:[[:space:]]*$step\\$" /proc/[0-9]*/status); do
      grep -qs '^State:[[:space:]]*Z' "$child" && continue
      grep -aqs '^slurmstepd: \\[' "${{child%status}}cmdline" || return 0
    done
  done
  return 1
}}
drain() {{ update state=drain reason='{prefix}its pod is being deleted' && drained=yes; }}
drained= quiet=0
drain
end=$(($(date +%s) + {wait_s}))
while [ "$(date +%s)" -lt "$end" ]; do
  if jobs=$(timeout 15 squeue --noheader --nodelist="$node" --states=CONFIGURING,RUNNING,SUSPENDED,COMPLETING); then
    if [ -z "$drained" ]; then drain; continue; fi
    [ -n "$jobs" ] || exit 0
    quiet=0
  else
    drained=
    if has_processes; then quiet=0; else quiet=$((quiet + 1)); fi
    [ "$quiet" -lt 2 ] || exit 0
  fi
  sleep 1
done
update state=down reason='{prefix}its pod was deleted before its jobs had ended'
"""
"""Asks Slurm for the node's jobs. While Slurm does not answer, it looks at the worker's processes: each step has a slurmstepd, whose
children are the step's tasks. A slurmstepd without children only has to report to slurmctld; that of an extern step has a child that
only sleeps. After a failed request, the drain is repeated, because slurmctld may not have received it."""


def script(grace_s: int, *, node: str = "") -> str:
    """Return the shell script; without a name in Slurm, it uses the host name. After `grace_s`, the kubelet kills the container."""
    wait_s = max(grace_s - _AFTERWARDS_S, 0)
    return _SCRIPT.format(prefix=REASON_PREFIX, wait_s=wait_s, node=node or "$(hostname)")
