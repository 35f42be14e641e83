"""Check a script as a whole, as sbatch does before it reads it (`_get_script_buffer` of `sbatch.c`)."""

from collections.abc import Iterator
from typing import Final

from slurmjobs.script.directives import where
from slurmjobs.script.words import BLANKS
from slurmruntime.values.faults import Fault

LARGEST_SCRIPT_BYTES: Final = 4 * 1024 * 1024
"""Slurm's own default (`max_script_size` in SchedulerParameters); sbatch itself reads up to 512 MiB."""
BYTE_ORDER_MARK: Final = "\ufeff"
"""Some editors put it first in a file; sbatch refuses such a script."""


def faults(script: str) -> Iterator[Fault]:
    """Yield the faults of the script apart from its directives."""
    size = len(script.encode(errors="surrogatepass"))
    if size > LARGEST_SCRIPT_BYTES:
        yield Fault(
            "script",
            f"it has {size} bytes, but Slurm accepts at most {LARGEST_SCRIPT_BYTES}: keep data and"
            " programs in files that the script reads",
        )
    if not script.strip(BLANKS):
        yield Fault("script", "it is empty")
    elif script.startswith(BYTE_ORDER_MARK):
        yield Fault(where(1), "it begins with a byte-order mark: save it as UTF-8 text without one")
    elif not script.startswith("#!"):
        yield Fault(
            where(1), "the first line does not begin with #! and an interpreter, such as #!/bin/sh"
        )
    if "\0" in script:
        line = script.count("\n", 0, script.index("\0")) + 1
        yield Fault(where(line), "it has a NUL character: a script is text, not a program")
    if "\r\n" in script:
        line = script.count("\n", 0, script.index("\r\n")) + 1
        yield Fault(
            where(line),
            r"it ends in a DOS line break (\r\n): convert the script, for instance with dos2unix",
        )


def decode(content: bytes) -> tuple[str, tuple[Fault, ...]]:
    """Decode a file's content; anything but UTF-8 is a fault.

    sbatch sends any bytes, but Kubernetes objects and JSON hold only UTF-8.
    """
    try:
        return content.decode(), ()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        fault = Fault(where(line), f"byte {error.start + 1} of the script is not UTF-8 text")
        return content.decode(errors="replace"), (fault,)
