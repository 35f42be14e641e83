"""Prometheus' text format 0.0.4, rendered once and kept as bytes."""

import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from slurmexporter.text.family import Family, Histogram, Metric, Value

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_FASTEST: Final = 1
"""zlib's fastest level: even so, metrics shrink to a tenth."""
_RAW: Final = -zlib.MAX_WBITS
_GZIP_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LAST_BLOCK: Final = b"\x03\x00"
"""An empty deflate block that ends the stream (RFC 1951)."""
_EXACT: Final = 1e15
"""Below this, a float represents every integer exactly."""
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


@dataclass(frozen=True, slots=True)
class MetricsText:
    """Metrics as bytes, plain and as deflate blocks that can be concatenated."""

    plain: bytes = b""
    deflated: bytes = b""
    series: int = 0
    dropped: int = 0
    """Series left out because they exceed the budget."""


def render(metrics: Iterable[Metric], *, max_series: int, extra: str = "") -> MetricsText:
    """Return metrics as text.

    Args:
        max_series: Maximum number of samples; those beyond are counted and left out.
        extra: A label for every sample, such as `cluster="a"`; "" for none.
    """
    lines: list[str] = []
    series = dropped = 0
    for family, samples in metrics:
        head = f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind}\n"
        for values, value in samples:
            if series >= max_series:
                dropped += 1
                continue
            if head:
                lines.append(head)
                head = ""
            lines.append(_sample(family, _labels(family.labels, values, extra), value))
            series += 1
    plain = "".join(lines).encode(errors="replace")
    return MetricsText(plain, _deflate(plain), series, dropped)


def join(parts: Iterable[MetricsText]) -> bytes:
    """Return a page in plain text."""
    return b"".join(part.plain for part in parts)


def compressed(parts: Sequence[MetricsText]) -> list[bytes]:
    """Return a page compressed (RFC 1952), in pieces; only its checksum has to be computed."""
    checksum = size = 0
    for part in parts:
        checksum = zlib.crc32(part.plain, checksum)
        size += len(part.plain)
    tail = struct.pack("<II", checksum, size & 0xFFFFFFFF)
    return [_GZIP_HEAD, *(part.deflated for part in parts), _LAST_BLOCK, tail]


def _deflate(plain: bytes) -> bytes:
    """Compress without ending the stream, so that other blocks can follow."""
    stream = zlib.compressobj(_FASTEST, zlib.DEFLATED, _RAW)
    return stream.compress(plain) + stream.flush(zlib.Z_FULL_FLUSH)


def number(value: float) -> str:
    """Return a value as Prometheus reads it."""
    if isinstance(value, int):
        return str(int(value))  # a bool is one, too
    if value == math.inf:
        return "+Inf"
    if value == -math.inf:
        return "-Inf"
    if value != value:  # noqa: PLR0124  # the one value that differs from itself
        return "NaN"
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)


def _sample(family: Family, labels: str, value: Value) -> str:
    if not isinstance(value, Histogram):
        return f"{family.name}{_braced(labels)} {number(value)}\n"
    lines, count = [], 0
    separator = "," if labels else ""
    for bound, here in zip((*value.bounds, math.inf), value.counts, strict=True):
        count += here
        lines.append(f'{family.name}_bucket{{{labels}{separator}le="{number(bound)}"}} {count}\n')
    lines.append(f"{family.name}_sum{_braced(labels)} {number(value.total)}\n")
    lines.append(f"{family.name}_count{_braced(labels)} {count}\n")
    return "".join(lines)


def _braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _labels(names: tuple[str, ...], values: tuple[str, ...], extra: str) -> str:
    own = ",".join(f'{name}="{escape(value)}"' for name, value in zip(names, values, strict=True))
    return f"{own},{extra}" if own and extra else own or extra


def escape(value: str) -> str:
    """Return a label's value with its backslashes, quotes and line feeds escaped."""
    return value.translate(_ESCAPES)
