"""Writing `api/raw.py`: a method for each operation."""

import re

from generate.decisions import OLDEST
from generate.header import header
from generate.operations import query_parameters
from generate.specification import Specification


def raw(spec: Specification) -> str:
    """Return the source of `api/raw.py`."""
    lines = []
    for name, versions in sorted(spec.operations.items()):
        said = versions[max(versions)]
        path = re.findall(r"{(\w+)}", said["path"].replace("{version}", ""))
        query = list(query_parameters(versions))
        arguments = [f"{part}: str | int" for part in path]
        body = "requestBody" in said
        if body:
            arguments.append("body: object")
        if query:
            arguments += ["*", *(f"{python}: Value = None" for python in query)]
        sent = ", ".join(
            [
                f'"{name}"',
                "{" + ", ".join(f'"{part}": {part}' for part in path) + "}",
                "{" + ", ".join(f'"{python}": {python}' for python in query) + "}",
                "body" if body else "None",
            ]
        )
        words = " ".join(said.get("summary", name).split()).rstrip(".")
        since = f" Needs v0.0.{min(versions)}." if min(versions) > OLDEST else ""
        lines += [
            "",
            f"    async def {name}(self, {', '.join(arguments)}) -> dict[str, Any]:".replace(
                ", )", ")"
            ),
            f'        """{words[0].upper()}{words[1:]}.{since}"""',
            f"        return await self._call({sent})",
        ]
    return "\n".join(
        [
            *header(spec),
            "from typing import Any",
            "",
            "from slurmclient.api.operation import RawCall, Value",
            "",
            "",
            "class Raw:",
            '    """All operations of slurmrestd, JSON in and out; names and fields are Slurm\'s."""',
            "",
            "    def __init__(self, call: RawCall) -> None:",
            "        self._call = call",
            *lines,
        ]
    )
