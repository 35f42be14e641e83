"""What the self-test makes of the API server's answers."""

import asyncio
import json

from typing_extensions import override

from bridge.domain.admission import selftest
from controllers.webhook.selftest import SelfTest
from slurmruntime.kube import errors
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from tests import virtual_time
from tests.virtual_time import VirtualClock

PATH = "/api/v1/namespaces/test/pods"
REFUSED = errors.Rejected(
    "POST", PATH, status=422, message="no such field", fields=frozenset({selftest.FAULT})
)


HANDED_OVER = json.dumps(
    {
        "metadata": {
            "name": "slurm-bridge-self-test",
            "namespace": "test",
            "labels": {names.BRIDGED_LABEL: "true"},
            "annotations": {names.REQUESTER_ANNOTATION: "us"},
            "finalizers": [names.FINALIZER],
        },
        "spec": {
            "containers": [{"name": "none"}],
            "schedulerName": names.SCHEDULER_NAME,
            "schedulingGates": [{"name": names.GATE}],
        },
    }
).encode()


class Cluster(KubeClient):
    """Answers each question about the faulty pod with the next of its answers, and the last one for ever."""

    def __init__(self, *answers: Exception | None, sound: bytes = HANDED_OVER) -> None:
        self.answers = list(answers)
        self.sound = sound

    @override
    async def request(self, method: str, path: str, **given: object) -> bytes:
        assert ("POST", PATH, {"dryRun": "All"}) == (method, path, given["params"])
        if given["body"] == selftest.SOUND_POD:
            return self.sound
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is not None:
            raise answer
        return HANDED_OVER


def fault_after(
    seconds: float, *answers: Exception | None, sound: bytes = HANDED_OVER
) -> str | None:
    async def main(clock: VirtualClock) -> str | None:
        test = SelfTest(
            Cluster(*answers, sound=sound),
            namespace="test",
            interval_s=60,
            metrics=Metrics("controllers"),
        )
        assert test.fault() == "not tested yet"
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(test.run(stop))
            await clock.sleep(seconds)
            stop.set()
        return test.fault()

    return virtual_time.run(main)


def test_a_refusal_by_our_own_webhook_and_a_pod_handed_over_are_what_is_hoped_for() -> None:
    assert fault_after(1, REFUSED) is None


def test_a_webhook_that_refuses_but_hands_nothing_over_does_not_work() -> None:
    bare = json.loads(HANDED_OVER)
    del bare["spec"]["schedulingGates"]

    said = fault_after(1, REFUSED, sound=json.dumps(bare).encode())

    assert f"it came out without the gate {names.GATE}" in (said or "")


def test_an_answer_that_is_no_pod_is_told() -> None:
    assert "cannot be created" in (fault_after(1, REFUSED, sound=b"{}") or "")


def test_a_pod_that_would_have_been_created_says_that_nobody_asks_the_webhook() -> None:
    assert "does not call the webhook" in (fault_after(1, None) or "")


def test_another_refusal_says_that_no_pods_can_be_created() -> None:
    away = errors.Unavailable("POST", PATH, status=500, message="failed calling webhook")
    assert "failed calling webhook" in (fault_after(1, away) or "")


def test_what_does_not_work_is_tested_again_soon() -> None:
    away = errors.Unavailable("POST", PATH, message="no answer")
    assert fault_after(3, away, REFUSED) is None
