"""Read a file of advisories, and answer which of them are about a package's version.

The file is a zip archive of JSON records in OSV's format (https://ossf.github.io/osv-schema/), such as OSV offers for PyPI.
"""

import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from packaging.version import InvalidVersion, Version

from slurmruntime.model.objects import JsonDict

MOST_AGE = timedelta(days=90)
"""An older file says nothing about what is known today."""

_ECOSYSTEM = "PyPI"
_RECORD = ".json"


class UnusableFile(Exception):
    """The file has no records, or too old ones; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisories:
    """The records of a file."""

    newest: datetime
    """When the newest record was changed."""
    by_package: Mapping[str, Sequence[JsonDict]]
    """Under the normalized name."""

    def of(self, package: str, version: str) -> list[JsonDict]:
        """Return the advisories about this version of a package."""
        name = _normalized(package)
        records = self.by_package.get(name, ())
        return [record for record in records if _is_about(record, name, Version(version))]


def read(file: Path, now: datetime) -> Advisories:
    """Read a file of advisories.

    Raises:
        UnusableFile: it is no such archive, has no advisories of Python packages, or the newest one is too old.
    """
    by_package: dict[str, list[JsonDict]] = defaultdict(list)
    changed: list[datetime] = []
    try:
        for record in _records(file):
            packages = {_normalized(entry["package"]["name"]) for entry in _affected(record)}
            for package in packages:
                by_package[package].append(record)
            if packages:
                changed.append(_moment(record["modified"]))
    except (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError) as error:
        raise UnusableFile(f"{file} is no zip archive of OSV records: {error!r}") from error
    if not changed:
        raise UnusableFile(f"{file} has no advisories of {_ECOSYSTEM}: name OSV's archive for it")
    newest = max(changed)
    if now - newest > MOST_AGE:
        raise UnusableFile(
            f"the newest advisory in {file} is of {newest:%Y-%m-%d}, {(now - newest).days} days ago, and may"
            f" be {MOST_AGE.days}: get a newer file"
        )
    return Advisories(newest=newest, by_package=by_package)


def _records(file: Path) -> Iterator[JsonDict]:
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if name.endswith(_RECORD):
                record = json.loads(archive.read(name))
                if isinstance(record, dict) and "affected" in record:
                    yield record


def _affected(record: JsonDict) -> list[JsonDict]:
    return [
        entry
        for entry in record["affected"]
        if entry.get("package", {}).get("ecosystem") == _ECOSYSTEM
    ]


def _is_about(record: JsonDict, package: str, version: Version) -> bool:
    """Evaluate a record as OSV's format says: a version is listed, or within a range."""
    return any(
        _is_listed(entry.get("versions", ()), version)
        or any(
            _is_within(one["events"], version)
            for one in entry.get("ranges", ())
            if one["type"] == "ECOSYSTEM"
        )
        for entry in _affected(record)
        if _normalized(entry["package"]["name"]) == package
    )


def _is_listed(versions: Iterable[str], version: Version) -> bool:
    return any(_version(text) == version for text in versions)


def _is_within(events: Iterable[Mapping[str, str]], version: Version) -> bool:
    is_affected = False
    for bound, kind in sorted(
        (_version(text), kind) for event in events for kind, text in event.items()
    ):
        if kind == "introduced" and version >= bound:
            is_affected = True
        elif (kind == "fixed" and version >= bound) or (
            kind == "last_affected" and version > bound
        ):
            is_affected = False
    return is_affected


def _version(text: str) -> Version:
    """Read a version; one that is none, as some early packages have, comes before all others."""
    try:
        return Version(text)
    except InvalidVersion:
        return Version("0.dev0")


def _normalized(name: str) -> str:
    """Return a package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
