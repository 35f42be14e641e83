"""The packages in an image: read from the image itself, checked against the lock, and written as CycloneDX.

Python's packages are listed in `*.dist-info/METADATA`, Debian's in dpkg's status file.
The format: https://cyclonedx.org/docs/1.6/json/
"""

import email.parser
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote
from uuid import UUID

from sandbox.errors import SandboxError
from slurmruntime.model.objects import JsonDict

DPKG_STATUS = "var/lib/dpkg/status"
_METADATA = re.compile(r".*\.dist-info/METADATA")
_PINNED = re.compile(r"^([\w.-]+)==([^ ;\\]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Component:
    """One package in an image."""

    kind: str
    """`pypi` or `deb`."""
    name: str
    version: str
    license: str = ""
    """As the package itself declares it, if it does."""

    @property
    def purl(self) -> str:
        """The package as every scanner names it: https://github.com/package-url/purl-spec."""
        name = f"debian/{quote(self.name)}" if self.kind == "deb" else quote(self.name)
        return f"pkg:{self.kind}/{name}@{quote(self.version, safe='')}"


def is_telling(path: str) -> bool:
    """Check whether `components` reads the file of that path."""
    return path == DPKG_STATUS or _METADATA.fullmatch(path) is not None


def components(files: Mapping[str, bytes]) -> tuple[Component, ...]:
    """Return every package that these files of an image list, sorted."""
    parts = {
        part for path, data in files.items() for part in _parse_components(path, data.decode())
    }
    return tuple(sorted(parts))


def _parse_components(path: str, text: str) -> Iterator[Component]:
    if path == DPKG_STATUS:
        for stanza in text.split("\n\n"):
            fields = email.parser.HeaderParser().parsestr(stanza)
            if fields["Status"] == "install ok installed":
                yield Component(kind="deb", name=fields["Package"], version=fields["Version"])
    elif _METADATA.fullmatch(path):
        fields = email.parser.HeaderParser().parsestr(text)
        yield Component(
            kind="pypi",
            name=normalized(fields["Name"]),
            version=fields["Version"],
            license=fields["License-Expression"] or "",
        )


def dpkg_status(packages: Mapping[str, str]) -> bytes:
    """Return dpkg's status file for packages by name, so that scanners see them."""
    stanzas = (
        f"Package: {name}\nStatus: install ok installed\nVersion: {version}\n"
        for name, version in sorted(packages.items())
    )
    return "\n".join(stanzas).encode()


def normalized(name: str) -> str:
    """Return a Python package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(lock: str) -> dict[str, str]:
    """Return the versions that a lock pins, by name."""
    return {normalized(name): version for name, version in _PINNED.findall(lock)}


def check(image: str, packages: Iterable[Component], pinned: Mapping[str, str]) -> None:
    """Check that Python's packages in an image are the lock's.

    Args:
        image: its name, for messages.
        packages: the packages in it.
        pinned: the allowed ones, name -> version.

    Raises:
        SandboxError: with every package that differs.
    """
    unlocked = [
        f"{part.name} {part.version}, expected {pinned.get(part.name, 'none')}"
        for part in packages
        if part.kind == "pypi" and pinned.get(part.name) != part.version
    ]
    if unlocked:
        raise SandboxError(
            f"{image} has packages that requirements.txt does not lock: {'; '.join(unlocked)}. Build it"
            " from this tree, on a base without other Python packages"
        )


def document(
    name: str,
    version: str,
    digest: str,
    packages: Iterable[Component],
    *,
    serial: UUID,
    now: datetime,
) -> JsonDict:
    """Return the bill of materials of an image, CycloneDX 1.6."""
    algorithm, _, hexadecimal = digest.partition(":")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial.urn,
        "version": 1,
        "metadata": {
            "timestamp": now.isoformat(),
            "component": {
                "type": "container",
                "bom-ref": name,
                "name": name,
                "version": version,
                "purl": f"pkg:oci/{name}@{quote(digest, safe='')}",
                "hashes": [
                    {"alg": algorithm.upper().replace("SHA", "SHA-"), "content": hexadecimal}
                ],
            },
        },
        "components": [_component(part) for part in packages],
    }


def _component(part: Component) -> JsonDict:
    fields = {"type": "library", "bom-ref": part.purl, "purl": part.purl}
    licensed = {"licenses": [{"expression": part.license}]} if part.license else {}
    return {**fields, "name": part.name, "version": part.version, **licensed}
