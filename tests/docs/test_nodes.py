"""The page and the code say the same."""

import re
from pathlib import Path

from bridge.settings.schema import Controllers
from docs.generate import nodes
from slurmruntime.values import names

PAGE = Path(__file__).parents[2] / "docs" / "nodes.md"


def test_the_tables_are_what_is_decided() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == nodes.render(page), "make docs"
    assert page.count("| cordoned | DRAIN, `slurm-bridge: cordoned in Kubernetes` |") == 1


def test_every_setting_and_key_it_names_is_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    settings = set(re.findall(r"`controllers\.(\w+)`", page))
    keys = set(re.findall(r"[a-z.]*(?:slinky\.slurm\.net|slurm-bridge\.dev)/[\w-]+", page))
    known = {value for value in vars(names).values() if isinstance(value, str)}

    assert settings
    assert settings <= set(Controllers.model_fields)
    assert {key for key in keys if not key.startswith(names.REQUEST_PREFIX)} <= known
