"""Which of several jobs with one key counts; the same jobs always give the same choice."""

import pytest

from slurmclient.resources.keys import Choice, JobKeyView, choose, marked

PENDING = frozenset({"PENDING"})
RUNNING = frozenset({"RUNNING"})


def job(job_id: int, step: str, states: frozenset[str] = PENDING, *, key: str = "k") -> JobKeyView:
    comment = marked("hello", key, "confirmed" if step == "confirmed" else "open")
    return JobKeyView(job_id=job_id, comment=comment, job_state=states)


OTHER = job(1, "confirmed", key="k2")
PLAIN = JobKeyView(job_id=2, comment="slurmclient-key=k is not at the end", job_state=PENDING)


@pytest.mark.parametrize(
    ("jobs", "choice"),
    [
        pytest.param([OTHER, PLAIN], Choice(job=None), id="none: another key, another comment"),
        pytest.param(
            [job(8, "open"), job(7, "open")],
            Choice(job=job(7, "open"), confirm=True, cancel=(8,)),
            id="all on hold: the lowest id",
        ),
        pytest.param(
            [job(7, "open"), job(8, "confirmed", RUNNING)],
            Choice(job=job(8, "confirmed", RUNNING), cancel=(7,)),
            id="a submit that came late: the confirmed one stays",
        ),
        pytest.param(
            [job(7, "confirmed", frozenset({"COMPLETED"}))],
            Choice(job=job(7, "confirmed", frozenset({"COMPLETED"}))),
            id="it has ended: it is not submitted again",
        ),
        pytest.param(
            [job(7, "open", frozenset({"CANCELLED"})), job(9, "open")],
            Choice(job=job(9, "open"), confirm=True),
            id="one that was cancelled before it was confirmed has never run",
        ),
    ],
)
def test_one_job_with_a_key_counts(jobs: list[JobKeyView], choice: Choice) -> None:
    assert choice == choose(jobs, "k")


def test_the_tasks_of_an_array_are_one_job() -> None:
    tasks = [
        JobKeyView(
            job_id=id_, array_job_id=7, comment=marked("", "k", "confirmed"), job_state=RUNNING
        )
        for id_ in (9, 8, 7)
    ]
    choice = choose(tasks, "k")
    assert (7, ()) == (choice.job.id if choice.job else 0, choice.cancel)
