"""An API server takes an integer's bound only if a JSON number holds it exactly."""

from deploy.job_definition import definition
from tests.make.bounds import EXACT, bounds


def test_every_bound_of_the_definition_is_exact() -> None:
    found = list(bounds(definition()))

    assert found
    assert all(-EXACT <= each <= EXACT for each in found)
