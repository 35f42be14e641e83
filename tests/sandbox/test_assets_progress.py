"""Where there is no terminal, progress is one line per stage."""

import io
import re

from sandbox import assets
from sandbox.assets.progress import Teller


def test_stages_are_lines_with_seconds() -> None:
    stream = io.StringIO()

    with assets.shown(stream) as report:
        tell = Teller("kube", report)
        tell("compiling, caches 1600 MiB")
        tell("1.36.4 now in the cache", done=True)

    first, second = stream.getvalue().splitlines()
    assert re.fullmatch(r"kube: compiling, caches 1600 MiB \(\d+ s\)", first)
    assert re.fullmatch(r"kube: 1.36.4 now in the cache \(\d+ s\)", second)
