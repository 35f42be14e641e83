"""What is the same for many SlurmJobs is read once, and again when it is old."""

import asyncio

import pytest

from slurmjobs.reconcile.remembering import AnswerCache


def test_an_answer_is_kept_for_a_while_and_a_failure_never_is() -> None:
    asked: list[str] = []
    now_s = 100.0

    async def read(key: str) -> str:
        asked.append(key)
        if key == "bad":
            raise ValueError(key)
        return key.upper()

    async def played() -> None:
        nonlocal now_s
        kept = AnswerCache(read, lasts_s=5.0, monotonic=lambda: now_s)
        assert [await kept.get(key) for key in "aba"] == ["A", "B", "A"]
        now_s += 4.9
        assert await kept.get("a") == "A"
        assert asked == ["a", "b"]
        now_s += 0.2
        await kept.get("a")
        assert asked == ["a", "b", "a"]
        for _ in range(2):
            with pytest.raises(ValueError, match="bad"):
                await kept.get("bad")
        assert asked[-2:] == ["bad", "bad"]

    asyncio.run(played())
