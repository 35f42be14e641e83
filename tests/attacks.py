"""Cases of a parametrised test that are attacks of the list in docs/security.md."""

from typing import Any

import pytest


def attack(case: str, what: str, why: str, *arguments: object) -> Any:  # pytest's type is private
    """One case; `docs.generate.attacks` reads the first three, which are literals."""
    return pytest.param(*arguments, id=case, marks=pytest.mark.attack(what, why))
