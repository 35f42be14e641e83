"""Jobs of a Slurm user who wants an exporter that is full, or to be read as something else."""

from itertools import islice, permutations

import pytest

from slurmexporter.families.own_jobs import INFO
from slurmexporter.jobtable.tally import Tally
from slurmexporter.text.rendering import render
from tests.exporter.records import job

PARTITIONS = ("main", "gpu", "big", "small", "debug", "long", "night")


@pytest.mark.attack(
    "submit jobs to the same partitions in ever other orders, and have slurm-exporter count each of these apart until it restarts",
    "50 lists of partitions are counted apart, the rest together",
)
def test_a_user_makes_no_series_by_listing_partitions_in_other_orders() -> None:
    tally = Tally(top_accounts=10)
    lists = [",".join(some) for some in islice(permutations(PARTITIONS), 2000)]
    for number, some in enumerate(lists):
        tally.count(None, job(number, "PENDING", partition=some), is_new_base=True)
    tally.count(None, job(9999, "PENDING"), is_new_base=True)

    assert 2001 == sum(tally.submits.values())
    assert len(tally.submits) <= 52
    assert 1 == tally.submits["main", "physics"]
    assert 1950 == tally.submits["(other)", "physics"]


FORGED = 'x",state="RUNNING"} 1\nslurm_nodes_down 0\n# EOF\n\\'


@pytest.mark.attack(
    "give a job a name with quotation marks and line feeds, so that slurm-exporter's page has lines of one's own, and everybody's scrape or alerts fail",
    "texts of users are escaped as Prometheus' format asks for",
)
def test_a_name_is_one_label_of_one_line() -> None:
    labels = ("7", "mallory", "physics", "main", "normal", FORGED, "PENDING")

    page = render([(INFO, [(labels, 1)])], max_series=10).plain.decode()

    lines = [line for line in page.split("\n") if line and not line.startswith("#")]
    assert [
        r'name="x\",state=\"RUNNING\"} 1\nslurm_nodes_down 0\n# EOF\n\\",state="PENDING"} 1'
    ] == [line[line.index("name=") :] for line in lines]
