"""SlurmJobs that once stopped the webhook, or filled its memory: they are refused, and pods are reviewed beside them.

Against the webhook as a process of its own, with TLS.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.attacks import attack
from tests.make.dear_scripts import DEAREST, directives, slurm_job
from tests.webhook.recordings import recorded
from tests.webhook.running import Webhook, running_webhook

LIMIT = 256 * 2**20
"""The chart's memory limit of the webhook."""

API_TIMEOUT_S = 5
"""The chart's `timeoutSeconds`: after that the API server refuses the pod."""


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    rules = [{"name": "all", "match": {"kinds": ["Pod", "SlurmJob"]}, "user": "{user}"}]
    folder = tmp_path_factory.mktemp("serving")
    with running_webhook(folder, slurm_jobs={"enabled": True}, policy={"rules": rules}) as webhook:
        yield webhook


def peak_bytes(webhook: Webhook) -> int:
    status = Path(f"/proc/{webhook.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def message(response: dict[str, Any]) -> str:
    text: str = response["status"]["message"]
    return text


@pytest.mark.parametrize(
    ("script", "told"),
    [
        attack(
            "time",
            "create a SlurmJob with 900 times `-x n[1-99999]`, which took 30 s to read while no pod was reviewed",
            "lists are checked and counted, never expanded; at most 500 options",
            directives(*["-x n[1-99999]"] * 900),
            "line 502: the header has more than 500 options",
        ),
        attack(
            "memory",
            "create a SlurmJob with `-x aaa…[1-99999]`, 16 kB that stand for 1.6 GB",
            "at most 4 MiB in all names",
            directives(f"-x {'a' * 16_000}[1-99999]"),
            "more than 4194304 characters in all names together",
        ),
        attack(
            "digits",
            "create a SlurmJob with `--gpus-per-task` of 5000 digits",
            "numbers are at most 1024 characters long, nine digits each",
            directives(f"--gpus-per-task={'1' * 5000}"),
            "--gpus-per-task has 5000 characters",
        ),
        attack(
            "letters",
            "create a SlurmJob with 1 MB of `-HHHH…`, a million options",
            "at most 500 options, and 32 KiB in all directives",
            directives(*[f"-{'H' * 16_000}"] * 60),
            "more than 500 options",
        ),
    ],
)
def test_a_script_that_stands_for_very_much_is_refused_with_its_line(
    serving: Webhook, script: str, told: str
) -> None:
    with ThreadPoolExecutor(1) as beside:
        refused = beside.submit(serving.review, "/validate", slurm_job(script))
        began = time.monotonic()
        assert serving.review("/mutate", recorded("pod"))["allowed"]
        assert time.monotonic() - began < API_TIMEOUT_S
        response = refused.result()

    assert told in message(response)
    assert peak_bytes(serving) < LIMIT
    assert "Traceback" not in serving.log


@pytest.mark.attack(
    "create the dearest SlurmJobs that are allowed, very many at a time",
    "one thread of their own, for which they wait 2 s at most; pods are reviewed beside it",
)
def test_a_flood_of_dear_scripts_lets_pods_pass(serving: Webhook) -> None:
    dear = slurm_job(DEAREST)
    serving.review("/mutate", recorded("pod"))
    with ThreadPoolExecutor(96) as crowd:
        answers = [crowd.submit(serving.review, "/validate", dear) for _ in range(300)]
        took = []
        while not all(answer.done() for answer in answers):
            began = time.monotonic()
            assert serving.review("/mutate", recorded("pod"))["allowed"]
            took.append(time.monotonic() - began)

    busy = [answer.result() for answer in answers if not answer.result()["allowed"]]
    assert len(took) > 10
    assert max(took) < API_TIMEOUT_S
    assert all("create it again in a few seconds" in message(each) for each in busy)
    assert {429} >= {each["status"]["code"] for each in busy}
    assert peak_bytes(serving) < LIMIT
