"""Writing `api/operations.py`: the table of operations."""

from collections.abc import Mapping

from generate.decisions import MUTATING_READS, identifier
from generate.header import header
from generate.specification import JsonDict, Specification


def operations(spec: Specification) -> str:
    """Return the source of `api/operations.py`."""
    lines = []
    for name, versions in sorted(spec.operations.items()):
        said = versions[max(versions)]
        query = query_parameters(versions)
        limits = {
            python: (min(found), max(found))
            for python, (_, found) in query.items()
            if set(found) != set(versions)
        }
        mutates = said["method"] != "GET" or name in MUTATING_READS
        params = {python: wire for python, (wire, _) in query.items()}
        lines.append(
            f"    {name!r}: Operation({name!r}, {said['method']!r}, {said['path']!r}, since={min(versions)},"
            f" mutates={mutates}, query={params!r}, limits={limits!r}),"
        )
    return "\n".join(
        [
            *header(spec),
            "from typing import Final",
            "",
            "from slurmclient.api.operation import Operation",
            "",
            "OPERATIONS: Final = {",
            *lines,
            "}",
        ]
    )


def query_parameters(versions: Mapping[int, JsonDict]) -> dict[str, tuple[str, list[int]]]:
    """Return Slurm's name of each query parameter, and its versions, by our name."""
    found: dict[str, tuple[str, list[int]]] = {}
    for version, said in sorted(versions.items()):
        for parameter in said.get("parameters", ()):
            if parameter["in"] == "query":
                wire = parameter["name"]
                found.setdefault(identifier(wire), (wire, []))[1].append(version)
    return found
