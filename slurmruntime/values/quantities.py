"""Kubernetes quantities (`100m`, `1.5Gi`, `2e3`) as exact numbers, and rounding to Slurm's units.

Source: <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>. Like the
API server, amounts finer than a billionth are rounded up and amounts above 2^63 - 1 are capped
there.
"""

import decimal
import functools
import re
from decimal import Decimal
from types import MappingProxyType

MIB = 1024 * 1024
"""Slurm's unit of memory, in bytes; Slurm calls it MB and means MiB."""

MILLI = 1000
"""Thousandths of a CPU, Kubernetes' unit, in one CPU."""

EXPECTED = "a Kubernetes quantity such as 2, 500m, 1.5Gi or 1e3"
"""What is accepted, as every error message and table of ours puts it."""

_SUFFIXES = MappingProxyType(
    {
        "n": Decimal("1e-9"),
        "u": Decimal("1e-6"),
        "m": Decimal("1e-3"),
        "": Decimal(1),
        "k": Decimal(10**3),
        "M": Decimal(10**6),
        "G": Decimal(10**9),
        "T": Decimal(10**12),
        "P": Decimal(10**15),
        "E": Decimal(10**18),
        "Ki": Decimal(2**10),
        "Mi": Decimal(2**20),
        "Gi": Decimal(2**30),
        "Ti": Decimal(2**40),
        "Pi": Decimal(2**50),
        "Ei": Decimal(2**60),
    }
)
_LONGEST = 64
_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,18})|([KMGTPE]i|[numkMGTPE])?)"
)
_LARGEST_EXPONENT = 200  # above, no text of _LONGEST characters is between 1e-9 and 2^63
_FINEST = Decimal("1e-9")
_LARGEST = Decimal(2**63 - 1)


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Decimal:
    """Read a quantity, cached, as pods request the same few; raise ValueError, with what is accepted."""
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError(f"expected {EXPECTED}, found {text[:_LONGEST]!r}")
    number, exponent, suffix = match.groups()
    # Rounding up twice equals rounding up once, so limited precision in between is harmless.
    rounding_up = decimal.Context(prec=40, rounding=decimal.ROUND_UP)
    if exponent is None:
        value = rounding_up.multiply(Decimal(number), _SUFFIXES[suffix or ""])
    else:
        shift = max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, int(exponent)))
        value = rounding_up.scaleb(Decimal(number), shift)
    if abs(value) > _LARGEST:
        return _LARGEST.copy_sign(value)
    return value.quantize(_FINEST, context=rounding_up)


def round_up(amount: Decimal) -> int:
    """Round up to a whole number: bytes, pods, devices."""
    return int(amount.to_integral_value(rounding=decimal.ROUND_CEILING))


def milli(amount: Decimal) -> int:
    """Round up to whole thousandths, as kube-scheduler counts CPUs."""
    return round_up(amount * 1000)


def cpus(milli_cpu: int, milli_per_cpu: int) -> int:
    """Round thousandths of a CPU of Kubernetes up to whole CPUs of Slurm (setting `slurm.milli_cpu_per_cpu`)."""
    return -(-milli_cpu // milli_per_cpu)


def cpu_quantity(count: int, milli_per_cpu: int) -> str:
    """Write CPUs of Slurm as Kubernetes does: `2`, or `1500m`."""
    whole_cpus, rest = divmod(count * milli_per_cpu, MILLI)
    return f"{count * milli_per_cpu}m" if rest else str(whole_cpus)


def mebibytes(memory_bytes: int) -> int:
    """Round bytes up to MiB, as Slurm counts memory."""
    return -(-memory_bytes // MIB)
