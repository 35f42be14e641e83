"""Conditions of an Argo Workflows resource template, judged as Argo judges them.

Argo reads `successCondition` and `failureCondition` as a label selector whose keys are paths into the
object (workflow/executor/resource.go): comparisons are of text, and a path that is missing has none.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

_REQUIREMENT = re.compile(r"\s*(?P<path>[\w.]+)\s*(?P<sign>==|=|!=)\s*(?P<word>[\w.-]+)\s*")


def holds(condition: str, found: Mapping[str, Any]) -> bool:
    """Check whether every requirement of a condition holds of an object."""
    return all(_holds(each, found) for each in condition.split(","))


def _holds(requirement: str, found: Mapping[str, Any]) -> bool:
    read = _REQUIREMENT.fullmatch(requirement)
    if read is None:
        raise ValueError(f"{requirement!r}: expected PATH == WORD")
    value: Any = found
    for key in read["path"].split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    is_equal = value is not None and str(value) == read["word"]
    return is_equal != (read["sign"] == "!=")


def conditions(page: Path) -> tuple[str, str]:
    """Return the conditions for success and failure of the workflow on a page."""
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    (text,) = [block for block in blocks if "successCondition" in block]
    (template,) = yaml.safe_load(text)["spec"]["templates"]
    return template["resource"]["successCondition"], template["resource"]["failureCondition"]
