"""Whatever Slurm refuses for good: it is tried less and less often, not with each answer that follows a try."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from slurmclient import errors
from tests.controllers import nodes_situations, pods_situations
from tests.make.situations import SETTLED_AFTER_S, Situation, lived_through
from tests.make.trouble import Trouble

MOST_TRIES = 12
"""Of one write, in 40 s: the back-off of the work queue doubles from 0.2 s, and each reading is another second."""

IN_SLURM = ("/job/", "/node", "/new/node", "complete ")

SITUATIONS = [*nodes_situations.SITUATIONS, *pods_situations.RESTORED, *pods_situations.COLLECTED]

REFUSALS: dict[str, Callable[[str], errors.SlurmError]] = {
    "rejected": lambda what: errors.Declined(what, "no", status=422, error_number=9000),
    "too old": lambda what: errors.TooOld(what, "slurmrestd lacks it"),
    "malformed": lambda what: errors.Malformed(what, "a page of a proxy", status=400),
}


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("there", SITUATIONS, ids=lambda there: there.name)
def test_what_slurm_refuses_for_good_is_tried_less_and_less_often(
    there: Situation, refusal: str
) -> None:
    trouble, tries = Trouble(), Counter[str]()
    write = trouble.write

    def refused(what: str, *args: Any, **kwargs: Any) -> Any:
        if any(part in what for part in IN_SLURM):
            tries[what] += 1
            raise REFUSALS[refusal](what)
        return write(what, *args, **kwargs)

    trouble.write = refused  # type: ignore[method-assign]  # for good

    lived_through(there, trouble)

    assert max(tries.values(), default=0) <= MOST_TRIES, f"{tries} in {SETTLED_AFTER_S} s"
