"""A real Prometheus that scrapes what a test names."""

import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from sandbox import ports


@contextmanager
def scraping(program: Path, targets: Sequence[Mapping[str, Any]], folder: Path) -> Iterator[str]:
    """Scrape twice a second while the context lasts; yield the URL of Prometheus.

    Args:
        program: its executable.
        targets: its `scrape_configs`.
        folder: for its configuration, its data and its log.
    """
    config = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "400ms"},
        "scrape_configs": [*targets],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    dice = random.Random()  # noqa: S311  # a port, nothing secret
    port = ports.choose(["prometheus"], dice=dice)["prometheus"]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            (
                str(program),
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{port}",
            ),
            stdout=log,
            stderr=log,
        )
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(10)
