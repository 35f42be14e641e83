"""Quantities, as the API server reads them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmruntime.values import quantities


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        pytest.param("1", "1", id="plain"),
        pytest.param("0", "0", id="zero"),
        pytest.param("100m", "0.1", id="thousandths"),
        pytest.param("1u", "0.000001", id="millionths"),
        pytest.param("1n", "0.000000001", id="billionths"),
        pytest.param("1.5Gi", "1610612736", id="binary with a fraction"),
        pytest.param("0.9Gi", "966367641.6", id="not whole"),
        pytest.param("2k", "2000", id="thousands"),
        pytest.param("3M", "3000000", id="millions"),
        pytest.param("1E", "1000000000000000000", id="exa, not an exponent"),
        pytest.param("1E3", "1000", id="an exponent, not exa"),
        pytest.param("12e-1", "1.2", id="negative exponent"),
        pytest.param("1e+2", "100", id="signed exponent"),
        pytest.param("5.", "5", id="nothing after the point"),
        pytest.param(".5", "0.5", id="nothing before the point"),
        pytest.param("+3", "3", id="plus"),
        pytest.param("-3k", "-3000", id="minus"),
        pytest.param("0.1n", "0.000000001", id="finer than a billionth is rounded up"),
        pytest.param("-0.1n", "-0.000000001", id="up is away from zero"),
        pytest.param("1e-1000", "0.000000001", id="however fine"),
        pytest.param("9e999", "9223372036854775807", id="more than 2^63 - 1 is cut"),
        pytest.param("-8Ei", "-9223372036854775807", id="less, too"),
        pytest.param("0e99999999999", "0", id="zero stays zero"),
    ],
)
def test_parse_reads_every_form(text: str, amount: str) -> None:
    assert Decimal(amount) == quantities.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 ",
        " 1",
        "1 Gi",
        "1.2.3",
        "1e2.3",
        "1e",
        "1kb",
        "1GGi",
        "1K",
        "1ki",
        "1Zi",
        "Gi",
        ".",
        "-",
        "0x10",
        "1_000",
        "\u0661",
        "nan",
        "inf",
        "1\n",
        "1" * 65,
    ],
)
def test_parse_refuses_the_rest_and_says_what_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match="expected a Kubernetes quantity such as"):
        quantities.parse(text)


@given(
    st.integers(-(2**62), 2**62),
    st.sampled_from(["", "m", "u", "n", "k", "M", "Ki", "Mi", "e3", "E-3"]),
)
def test_parse_agrees_with_exact_arithmetic(number: int, suffix: str) -> None:
    factor = {
        "": Decimal(1), "m": Decimal("1e-3"), "u": Decimal("1e-6"), "n": Decimal("1e-9"),
        "k": Decimal(1000), "M": Decimal(10**6), "Ki": Decimal(1024), "Mi": Decimal(1024**2),
        "e3": Decimal(1000), "E-3": Decimal("1e-3"),
    }[suffix]  # fmt: skip
    exact = Decimal(number) * factor
    most = Decimal(2**63 - 1)

    assert max(-most, min(most, exact)) == quantities.parse(f"{number}{suffix}")


@pytest.mark.parametrize(
    ("text", "milli_cpu", "cores"),
    [
        ("0", 0, 0),
        ("1m", 1, 1),
        ("0.1m", 1, 1),
        ("1", 1000, 1),
        ("1001m", 1001, 2),
        ("2.0", 2000, 2),
    ],
)
def test_cpus_are_rounded_up(text: str, milli_cpu: int, cores: int) -> None:
    assert milli_cpu == quantities.milli(quantities.parse(text))
    assert cores == quantities.cpus(milli_cpu, 1000)


@pytest.mark.parametrize(
    ("text", "mib"),
    [("0", 0), ("1", 1), ("512Ki", 1), ("1Mi", 1), ("1048577", 2), ("100M", 96), ("1Gi", 1024)],
)
def test_memory_is_rounded_up(text: str, mib: int) -> None:
    assert mib == quantities.mebibytes(quantities.round_up(quantities.parse(text)))


@given(st.integers(0, 2**60), st.sampled_from([1000, 500, 100, 50]))
def test_what_slurm_gives_covers_what_kubernetes_counts(amount: int, unit: int) -> None:
    assert quantities.mebibytes(amount) * quantities.MIB >= amount
    assert (quantities.mebibytes(amount) - 1) * quantities.MIB < amount
    assert quantities.cpus(amount, unit) * unit >= amount
    assert (quantities.cpus(amount, unit) - 1) * unit < amount


@pytest.mark.parametrize(
    ("count", "unit", "text"), [(2, 1000, "2"), (20, 100, "2"), (15, 100, "1500m"), (1, 50, "50m")]
)
def test_slurms_cpus_are_told_as_kubernetes_writes_them(count: int, unit: int, text: str) -> None:
    assert text == quantities.cpu_quantity(count, unit)
