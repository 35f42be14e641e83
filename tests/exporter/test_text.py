"""The text format, budgets, and how TRES and GRES are read."""

import gzip
import math
import zlib

import pytest

from slurmexporter.readings import tres
from slurmexporter.text.budget import OTHER, Admission, largest
from slurmexporter.text.family import Family, Histogram
from slurmexporter.text.rendering import compressed, join, number, render
from tests.exporter.records import samples

GAUGE = Family("a", "gauge", "An a.", ("b",))


def test_a_family_has_one_head_and_escaped_labels() -> None:
    page = render([(GAUGE, [(('x"\n\\',), 1), (("y",), 2.5)])], max_series=10)
    assert b'# HELP a An a.\n# TYPE a gauge\na{b="x\\"\\n\\\\"} 1\na{b="y"} 2.5\n' == page.plain


def test_compressed_parts_join_to_one_compressed_page() -> None:
    parts = [render([(GAUGE, [((str(n),), n)])], max_series=10) for n in range(3)]
    stream = zlib.decompressobj(wbits=31)
    assert join(parts) == stream.decompress(b"".join(compressed(parts)))
    assert (True, b"") == (stream.eof, stream.unused_data), "clients read one member only"
    assert b"" == gzip.decompress(b"".join(compressed([])))


def test_a_family_without_samples_is_left_out() -> None:
    assert b"" == render([(GAUGE, [])], max_series=10).plain


def test_series_beyond_the_budget_are_counted_and_left_out() -> None:
    page = render([(GAUGE, [((str(n),), n) for n in range(5)])], max_series=3)
    assert (3, 2, 3) == (page.series, page.dropped, len(samples(page.plain)["a"]))


def test_a_histogram_is_cumulative() -> None:
    histogram = Histogram.of((1.0, 2.0))
    for value in (1, 1.5, 9):
        histogram.observe(value)
    family = Family("h", "histogram", "An h.")
    assert {
        "h_bucket": {(("le", "1"),): 1, (("le", "2"),): 2, (("le", "+Inf"),): 3},
        "h_sum": {(): 11.5},
        "h_count": {(): 3},
    } == samples(render([(family, [((), histogram)])], max_series=10).plain)


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "1"), (3, "3"), (3.0, "3"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")],
)
def test_numbers_are_written_as_prometheus_reads_them(value: float, text: str) -> None:
    assert text == number(value)


def test_the_largest_keep_their_names() -> None:
    assert {"b", "c"} == largest({"a": 1, "b": 3, "c": 2}, 2)
    assert {"a", "b"} == largest({"c": 1, "b": 1, "a": 1}, 2), "the same ones every time"


def test_a_counter_keeps_the_names_that_it_has_admitted() -> None:
    admission = Admission(1)
    assert ["a", OTHER, "a"] == [admission.name(one) for one in ("a", "b", "a")]


def test_tres_have_units() -> None:
    found = tres.amounts("cpu=4,mem=1.5G,node=1,gres/gpu=2,gres/gpu:a100=2,odd,bb/x=?")
    expected = {"cpu": 4, "mem": 1.5 * 2**30, "node": 1, "gres/gpu": 2, "gres/gpu:a100": 2}
    assert expected == found
    assert 2 == tres.gpus(found)
    assert 3 == tres.gpus(tres.amounts("gres/gpu:a=1,gres/gpu:b=2"))
    assert 100 * 2**20 == tres.amounts("mem=100")["mem"]


def test_gres_have_types_and_bindings() -> None:
    text = "gpu:h200:4(S:0-1),gpu:a100:2(IDX:0,1),shard:1K,bad,gpu:x:y"
    assert {("gpu", "h200"): 4, ("gpu", "a100"): 2, ("shard", ""): 1024} == tres.gres(text)
    assert 6 == tres.gpus_of(text)
    assert 0 == tres.gpus_of("")
