"""The reference of metrics is what the programs export."""

from pathlib import Path

from docs.generate import metrics as metrics_page
from slurmruntime.process.metrics import Metrics

PAGE = Path(__file__).parents[2] / "docs/metrics.md"


def test_the_page_is_what_the_programs_export() -> None:
    assert PAGE.read_text() == metrics_page.render(), "make docs"


def test_every_metric_is_described() -> None:
    metrics = Metrics("webhook")
    exported = {
        line.split()[2]
        for line in metrics.registry.exposition().decode().splitlines()
        if line.startswith("# TYPE slurm_bridge_")
    }

    described = {one.name for one in metrics.registry.descriptions}
    assert exported - described == {"slurm_bridge_build_info"}
    assert described <= exported
