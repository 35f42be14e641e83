"""`python -m benchmarks.readers`: what each reader of others' text costs at its worst, at the largest size that it is given.

The worst inputs are those of `tests/fuzz`: each piece of a reader's grammar, repeated. All are tried at a small size, and the dearest ones at the bound.
Prints a table in Markdown, the dearest first: milliseconds of CPU, the better of two runs, and the peak of memory.
"""

import argparse
import contextlib
import sys
import time
import tracemalloc
from typing import Final

from tests.fuzz import corpus
from tests.fuzz.readers.reader import MIB, Reader
from tests.fuzz.readers.registry import READERS

SMALL: Final = 8192
DEAREST: Final = 4
PIECE: Final = MIB
"""Bytes of what is longer because it is a list: it is read in slices, and the loop turns after each."""


def main(arguments: list[str]) -> None:
    """Measure the readers, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readers", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of readers")
    parser.add_argument("--least-ms", type=float, default=5.0, help="leave out what takes less")
    options = parser.parse_args(arguments)
    rows = sorted(
        (measure(reader) for reader in READERS if options.only in reader.name), reverse=True
    )
    print(
        "| reader | KiB | CPU, ms | memory, MiB | worst input |\n| --- | ---: | ---: | ---: | --- |"
    )
    for cpu_s, memory, length, name, text in rows:
        if 1000 * cpu_s >= options.least_ms:
            figures = f"{length / 1024:.4g} | {1000 * cpu_s:.0f} | {memory / MIB:.1f}"
            print(f"| `{name}` | {figures} | `{text}` |", flush=True)
    print(f"\n{len(rows)} readers")


def measure(reader: Reader) -> tuple[float, int, int, str, str]:
    """Return CPU seconds, bytes of memory, the length, the reader and the middle of its worst input."""
    length = min(reader.most_bytes, PIECE if reader.dear else 8 * MIB)
    for text in ("", "a"):  # what is made once
        _read(reader, text)
    small = enumerate(reader.grammar.worst(min(length, SMALL)))
    order = sorted(small, key=lambda numbered: -_cpu_s(reader, numbered[1]))
    chosen = {number for number, _ in order[:DEAREST]}
    texts = [text for number, text in enumerate(reader.grammar.worst(length)) if number in chosen]
    cpu_s, worst = max((_cpu_s(reader, text), text) for text in (*texts, *corpus.inputs(reader)))
    tracemalloc.start()
    _read(reader, worst)
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    middle = len(worst) // 2
    shown = repr(worst[middle : middle + 12]).replace("|", "\\|").replace("`", "'")
    return cpu_s, memory, length, reader.name, shown


def _cpu_s(reader: Reader, text: str) -> float:
    took_s: list[float] = []
    for _ in range(2):
        begun_s = time.thread_time()
        _read(reader, text)
        took_s.append(time.thread_time() - begun_s)
    return min(took_s)


def _read(reader: Reader, text: str) -> None:
    with contextlib.suppress(*reader.refusals):
        reader.read(text)


if __name__ == "__main__":
    main(sys.argv[1:])
