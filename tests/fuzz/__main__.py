"""`make fuzz`: look for inputs that break a reader of the registry, for an hour unless told otherwise.

Hypothesis turns random bytes into texts of each reader's grammar, its corpus and odd characters. A reader may raise what the registry says, and
takes at most two seconds of CPU. What breaks one is shortened, kept in the corpus, which `make test` replays, and reported at the end.
"""

import argparse
import hashlib
import random
import signal
import sys
import time
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import corpus
from tests.fuzz.readers.reader import Reader
from tests.fuzz.readers.registry import READERS

LONGEST_S = 2.0
INPUTS = 200
"""For one reader before the next has its turn."""
BUFFER = 512
"""Random bytes that an input is made of."""


class TooLong(Exception):
    """A reader took more CPU than any linear one would."""


def main(arguments: list[str]) -> int:
    """Fuzz until the time is over; return the number of readers that broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--only", default="", help="a part of the names of readers")
    parser.add_argument("--seed", type=int, default=None, help="repeats a run")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    print(f"seed {seed}", flush=True)
    signal.signal(signal.SIGVTALRM, _stop)
    source = random.Random(seed)  # noqa: S311  # no secret
    rest = [reader for reader in READERS if options.only in reader.name]
    broken: dict[str, str] = {}
    until = time.monotonic() + 60 * options.minutes
    inputs = rounds = 0
    while rest and time.monotonic() < until:
        rounds += 1
        for reader in tuple(rest):
            inputs += INPUTS
            if found := _try(reader, source):
                broken[reader.name] = found
                rest.remove(reader)
                print(f"{reader.name}: {found}", flush=True)
            if time.monotonic() >= until:
                break
    print(f"{inputs} inputs in {rounds} rounds, {len(broken)} readers broken", flush=True)
    return min(len(broken), 1)


def _try(reader: Reader, source: random.Random) -> str:
    """Give a reader some inputs; return how it broke, "" if it did not."""
    shortest: list[tuple[str, str]] = []

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(texts(reader))
    def reads(text: str) -> None:
        if fault := _fault(reader, text):
            shortest.append((text, fault))

    fuzzed: Any = reads  # Hypothesis adds the attribute
    for _ in range(INPUTS):
        fuzzed.hypothesis.fuzz_one_input(source.randbytes(source.randrange(1, BUFFER)))
        if shortest:
            text, fault = shortest[0]
            return f"{fault}; kept as {_keep(reader, _shortened(reader, text))}"
    return ""


def texts(reader: Reader) -> st.SearchStrategy[str]:
    """Return texts of a reader's grammar: its pieces, repeated, in its frames, and spoilt ones of its corpus."""
    pieces = st.sampled_from(reader.grammar.pieces) | st.text(max_size=4)
    repeated = st.builds(
        lambda piece, times: piece * times, pieces, st.sampled_from((1, 1, 1, 2, 17, 5000))
    )
    inner = st.lists(repeated, max_size=12).map("".join)
    framed = st.builds(
        lambda frame, text: frame[0] + text + frame[1],
        st.sampled_from(reader.grammar.frames),
        inner,
    )
    known = list(corpus.inputs(reader))
    if known:
        spoilt = st.builds(_spoilt, st.sampled_from(known), inner, st.integers(0, 5000))
        framed = framed | spoilt
    return framed.map(lambda text: text[: reader.most_bytes])


def _spoilt(text: str, inner: str, at: int) -> str:
    at %= len(text) + 1
    return text[:at] + inner + text[at + 1 :]


def _fault(reader: Reader, text: str) -> str:
    """Return what a reader did wrong, "" for nothing."""
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
    try:
        reader.read(text)
    except reader.refusals:
        return ""
    except TooLong:
        return f"more than {LONGEST_S:g} s for {len(text)} characters"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


def _shortened(reader: Reader, text: str) -> str:
    """Leave out what is not needed to break the reader."""
    step = len(text) // 2
    while step:
        at = 0
        while at < len(text):
            shorter = text[:at] + text[at + step :]
            if _fault(reader, shorter):
                text = shorter
            else:
                at += step
        step //= 2
    return text


def _keep(reader: Reader, text: str) -> str:
    content = text.encode(errors="surrogatepass")
    folder = corpus.folder(reader)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(content).hexdigest()[:12]}.txt"
    path.write_bytes(content)
    return str(path)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TooLong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
