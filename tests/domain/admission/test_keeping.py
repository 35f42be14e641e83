"""What stays on a pod whose manifest is applied again."""

from dataclasses import replace
from typing import Any

import pytest

from bridge.domain.admission import keeping
from bridge.domain.admission.review import Verdict
from slurmruntime.model.affinity import Toleration
from slurmruntime.model.json_patch import Operation
from slurmruntime.values import names
from tests.domain.admission.drafts import HANDED_OVER, NAME, ORDINARY, TOLERATION, add
from tests.make.placing import OUR_TOLERATION

APPLIED = replace(HANDED_OVER, gates=None, finalizers=(names.FINALIZER, "example.com/hold"))
GPU = Toleration(key="gpu", operator="Exists")


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param({}, [], id="nothing is missing"),
        pytest.param({"scheduler_name": "default-scheduler"}, [NAME], id="default-scheduler"),
        pytest.param({"scheduler_name": ""}, [NAME], id="no scheduler"),
        pytest.param(
            {"scheduler_name": names.binder(names.SCHEDULER_NAME)}, [NAME], id="our other name"
        ),
        pytest.param({"scheduler_name": "volcano"}, [], id="another one is the API server's word"),
        pytest.param({"tolerations": None}, [add("/spec/tolerations", [TOLERATION])], id="none"),
        pytest.param(
            {"scheduler_name": "", "tolerations": (GPU,)},
            [NAME, add("/spec/tolerations/-", TOLERATION)],
            id="both",
        ),
        pytest.param({"tolerations": (GPU, Toleration(operator="Exists"))}, [], id="everything"),
    ],
)
def test_what_a_pod_has_from_us_stays_when_its_manifest_is_applied(
    pod: dict[str, Any], expected: list[Operation]
) -> None:
    applied = replace(APPLIED, **pod)

    assert Verdict(patch=tuple(expected)) == keeping.keep(applied, APPLIED)


def test_nothing_is_kept_that_was_not_there() -> None:
    before = replace(APPLIED, tolerations=(GPU,))
    assert Verdict() == keeping.keep(before, before)
    assert Verdict() == keeping.keep(ORDINARY, replace(ORDINARY, tolerations=(OUR_TOLERATION,)))
