"""The host's apt configuration: which Debian mirrors to use, and how."""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ETC = Path("/etc/apt")
DEBIAN = re.compile(
    r"(bullseye|bookworm|trixie|forky|duke|sid|(old)*stable|testing|unstable)(-updates|-backports)?"
)
"""Suites of Debian's own archive. Only that archive has all suites; -security and third parties are
separate archives.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """An archive with a `dists/` folder below its address."""

    address: str
    check_expiry: bool = True
    """False if the host accepts this source past its Valid-Until."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One entry of sources.list or one stanza of a .sources file."""

    types: tuple[str, ...]
    addresses: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: Mapping[str, str]
    """Names in lower case."""


def mirrors(etc: Path = ETC, *, check_expiry: bool = True) -> list[Mirror]:
    """Return the mirrors of Debian's main archive in the host's sources, those at /debian first."""
    by_address: dict[str, Mirror] = {}
    for source in sources(etc):
        checks = check_expiry and source.options.get("check-valid-until", "yes") != "no"
        if "deb" in source.types and "main" in source.components and _is_debian(source):
            for address in source.addresses:
                by_address.setdefault(address, Mirror(address=address, check_expiry=checks))
    return sorted(by_address.values(), key=lambda mirror: not mirror.address.endswith("/debian"))


def sources(etc: Path = ETC) -> Iterator[Source]:
    """Yield the entries of both styles, with mirror lists replaced by the addresses in them."""
    for file in (etc / "sources.list", *sorted(etc.glob("sources.list.d/*.list"))):
        yield from one_line_style(_text(file))
    for file in sorted(etc.glob("sources.list.d/*.sources")):
        yield from deb822_style(_text(file))


def one_line_style(text: str) -> Iterator[Source]:
    """Parse `deb [option=value …] address suite component …`, sources.list(5)."""
    pattern = re.compile(
        r"^\s*(deb|deb-src)\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)([^#\n]*)", re.MULTILINE
    )
    for kind, options, address, suite, components in pattern.findall(text):
        yield Source(
            types=(kind,),
            addresses=tuple(_addresses([address])),
            suites=(suite,),
            components=tuple(components.split()),
            options={
                name.lower(): value
                for name, _, value in (option.partition("=") for option in options.split())
            },
        )


def deb822_style(text: str) -> Iterator[Source]:
    """Parse stanzas of `Field: value`, continued on indented lines, sources.list(5)."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        fields = {
            name.lower(): " ".join(value.split())
            for name, value in re.findall(
                r"^([\w-]+):((?:.*)(?:\n[ \t]+.*)*)", stanza, re.MULTILINE
            )
        }
        if fields and fields.get("enabled", "yes").lower() not in {"no", "false", "0"}:
            yield Source(
                types=tuple(fields.get("types", "").split()),
                addresses=tuple(_addresses(fields.get("uris", "").split())),
                suites=tuple(fields.get("suites", "").split()),
                components=tuple(fields.get("components", "").split()),
                options=fields,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The part of apt's configuration that concerns downloads."""

    check_expiry: bool = True
    proxies: Mapping[str, str]
    """Scheme -> URL; "" means a direct connection."""


def configuration() -> Configuration:
    """Return the host's configuration, or apt's defaults if there is no apt."""
    if shutil.which("apt-config") is None:
        return parse_configuration("")
    done = subprocess.run(["apt-config", "dump"], check=False, capture_output=True, text=True)  # noqa: S607  # found on PATH above
    return parse_configuration(done.stdout)


def parse_configuration(dump: str) -> Configuration:
    """Parse the output of `apt-config dump`."""
    values = dict(re.findall(r'^Acquire::(\S+) "(.*)";$', dump, re.MULTILINE))
    proxies = {scheme: values.get(f"{scheme}::Proxy", "") for scheme in ("http", "https")}
    return Configuration(
        check_expiry=values.get("Check-Valid-Until", "true").lower() not in {"false", "no", "0"},
        proxies={
            scheme: "" if proxy == "DIRECT" else proxy for scheme, proxy in proxies.items() if proxy
        },
    )


def _is_debian(source: Source) -> bool:
    return any(DEBIAN.fullmatch(suite) for suite in source.suites)


def _addresses(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        scheme, _, rest = value.partition(":")
        if scheme in {"http", "https"}:
            yield value.rstrip("/")
        elif scheme == "mirror+file":
            listed = [line.split() for line in _text(Path(rest)).splitlines()]
            yield from _addresses(words[0] for words in listed if words)


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:  # missing or unreadable: no source
        return ""
