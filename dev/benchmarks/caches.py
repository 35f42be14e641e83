"""Read a list of our pods into a service's cache, in a separate process.

Time, and memory from nothing.

python -m benchmarks.caches COUNT < POD.json > MEASURED.json
"""

import os
import sys
import time
from typing import TypeVar

import msgspec

from benchmarks.results import Micro
from bridge.kube.decode import PODS
from bridge.reconcile.nodes import bound_to
from slurmruntime.kube import resource
from slurmruntime.kube.cache import Cache

T = TypeVar("T")

PAGE = 500
"""The page size that reflectors request."""


def main() -> None:
    """Fill the cache that holds our pods; print what that took."""
    count = int(sys.argv[1])
    pages = _pages(sys.stdin.buffer.read(), count)
    ours = Cache(PODS)
    ours.index(bound_to)
    before_mib = _resident_mib()
    began_s = time.process_time()
    for page in pages:
        _fill(ours, page)
    took_s = time.process_time() - began_s
    if len(ours) != count:
        sys.exit(f"{len(ours)} pods of {count} could be read")
    micro = Micro(
        count=count,
        cpu_ms=round(1000 * took_s / count, 4),
        memory_mib=round(_resident_mib() - before_mib, 1),
    )
    sys.stdout.buffer.write(msgspec.json.encode(micro))


def _fill(cache: Cache[T], page: bytes) -> None:
    for item in resource.page(cache.kind.path, page).items:
        cache.put_listed(cache.kind.read(item))


def _pages(pod: bytes, count: int) -> list[bytes]:
    """Return the pod repeatedly under other names, as the API server would list it."""
    document = msgspec.json.decode(pod)
    listed = []
    for number in range(count):
        document["metadata"] |= {"name": f"pod-{number}", "uid": f"{number:036}"}
        listed.append(msgspec.json.encode(document))
    return [
        b'{"metadata":{"resourceVersion":"1"},"items":[' + b",".join(listed[at : at + PAGE]) + b"]}"
        for at in range(0, count, PAGE)
    ]


def _resident_mib() -> float:
    with open("/proc/self/statm") as statm:  # noqa: PTH123  # proc_pid_statm(5)
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


if __name__ == "__main__":
    main()
