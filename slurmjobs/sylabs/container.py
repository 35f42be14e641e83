"""Write the script of a job that names a container image instead of a script."""

import re
import shlex
from collections.abc import Iterator
from typing import Final

from slurmjobs.sylabs.spec import ContainerOptions, ContainerResources

_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*://")
_SWITCHES: Final = (
    ("clean_env", "--cleanenv"),
    ("fake_root", "--fakeroot"),
    ("ipc", "--ipc"),
    ("pid", "--pid"),
    ("no_privs", "--no-privs"),
    ("writable", "--writable"),
)
_PULLED: Final = '"wlm-$SLURM_JOB_ID.sif"'
"""Image file in the working directory, which all nodes of a job share."""
_SECONDS_OF_A_MINUTE: Final = 60


def script(image: str, options: ContainerOptions) -> str:
    """Return a script that runs the image once on each node; each field becomes exactly one word of it."""
    run = " ".join(("srun singularity run", *_words(options)))
    if not _URI.match(image):
        return f"#!/bin/sh\nexec {run} {shlex.quote(image)}\n"
    unsigned = "--allow-unsigned " if options.allow_unsigned else ""
    pull = f"srun --nodes=1 --ntasks=1 singularity pull {unsigned}{_PULLED} {shlex.quote(image)}"
    return f"#!/bin/sh\n{pull} || exit\n{run} {_PULLED}\nended=$?\nrm -f {_PULLED}\nexit $ended\n"


def requested_options(resources: ContainerResources) -> Iterator[tuple[str, str, str | int]]:
    """Yield the sbatch options for the requested resources: the field, the option, its value."""
    yield "nodes", "ntasksPerNode", 1
    if resources.nodes:
        yield "nodes", "nodes", resources.nodes
    if resources.cpu_per_node:
        yield "cpuPerNode", "cpusPerTask", resources.cpu_per_node
    if resources.mem_per_node:
        yield "memPerNode", "mem", resources.mem_per_node
    if resources.wall_time:
        minutes = -(-resources.wall_time // _SECONDS_OF_A_MINUTE)
        yield "wallTime", "time", minutes


def _words(options: ContainerOptions) -> Iterator[str]:
    yield from (word for field, word in _SWITCHES if getattr(options, field))
    if options.app:
        yield f"--app={shlex.quote(options.app)}"
    if options.host_name:
        yield f"--hostname={shlex.quote(options.host_name)}"
    yield from (f"--bind={shlex.quote(bind)}" for bind in options.binds)
