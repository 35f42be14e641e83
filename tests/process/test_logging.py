import io
import json
import logging as stdlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from structlog.contextvars import bound_contextvars

from slurmruntime.process import logging
from slurmruntime.settings.sections import Log

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3MDAwMDAwMDB9.c2lnbmF0dXJl"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where the logs go; everything is as before afterwards."""
    root = stdlib.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_time_level_and_program(stream: io.StringIO) -> None:
    logging.configure(Log(), "extender", stream)
    structlog.get_logger().info("placeholder.submitted", job_id=4711)
    (line,) = lines(stream)

    assert datetime.fromisoformat(line.pop("timestamp")).tzinfo == UTC
    assert {
        "event": "placeholder.submitted",
        "job_id": 4711,
        "level": "info",
        "program": "extender",
    } == line


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, ["x" * 10**6], ["x"] * 10**5, {"x" * 10**6: 1}, "x" * 4090 + JWT],
    ids=["text", "long item", "many items", "long key", "a token at the end"],
)
def test_no_value_is_longer_than_4_kb(stream: io.StringIO, value: object) -> None:
    logging.configure(Log(), "extender", stream)
    structlog.get_logger().info("placeholder.refused", said=value)

    assert len(stream.getvalue()) < 5000
    assert JWT[:5] not in stream.getvalue()


def test_context_is_part_of_every_line(stream: io.StringIO) -> None:
    logging.configure(Log(), "extender", stream)
    with bound_contextvars(key="a"):
        structlog.get_logger().info("one")
        stdlib.getLogger("aiohttp").warning("two")
    structlog.get_logger().info("three")

    assert ["a", "a", None] == [line.get("key") for line in lines(stream)]


def test_libraries_speak_through_the_same_pipe_but_only_warnings(stream: io.StringIO) -> None:
    """kubernetes_asyncio logs whole Secrets on its debug level."""
    logging.configure(Log(level="debug"), "extender", stream)
    for name in ("uvicorn.error", "aiohttp.client", "kubernetes_asyncio.client.rest"):
        stdlib.getLogger(name).debug("a Secret")
        stdlib.getLogger(name).warning("odd: %s", name)

    assert ["uvicorn.error", "aiohttp.client", "kubernetes_asyncio.client.rest"] == [
        line["logger"] for line in lines(stream)
    ]
    assert "odd: uvicorn.error" == lines(stream)[0]["event"]


@pytest.mark.parametrize(
    ("level", "written"),
    [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)],
)
def test_what_is_below_the_level_is_not_written(
    stream: io.StringIO, level: Any, written: int
) -> None:
    logging.configure(Log(level=level), "extender", stream)
    log = structlog.get_logger()
    for say in (log.debug, log.info, log.warning, log.error):
        say("x")

    assert written == len(lines(stream))


def test_a_traceback_stays_within_its_line(stream: io.StringIO) -> None:
    logging.configure(Log(), "extender", stream)
    structlog.get_logger().error("ours", exc_info=ZeroDivisionError())
    stdlib.getLogger("asyncio").error("theirs", exc_info=ZeroDivisionError())
    ours, theirs = lines(stream)

    assert "ZeroDivisionError" in ours["exception"]
    assert "ZeroDivisionError" in theirs["exception"]


@pytest.mark.parametrize("is_terminal", [False, True])
def test_secrets_are_not_written(
    stream: io.StringIO, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    logging.configure(Log(), "extender", stream)
    structlog.get_logger().info(
        f"said {JWT}",
        token="s3cret",  # noqa: S106  # that is the test
        slurm_token="s3cret",  # noqa: S106  # that is the test
        headers={"X-SLURM-USER-TOKEN": "s3cret", "Authorization": "s3cret"},
        token_file="/etc/token",  # noqa: S106  # that is the test
    )
    structlog.get_logger().error("failed", exc_info=ValueError(JWT))
    stdlib.getLogger("aiohttp").warning("sent %s", JWT)
    written = stream.getvalue()

    assert "s3cret" not in written
    assert "eyJ" not in written
    assert "/etc/token" in written


def test_a_terminal_gets_text(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "isatty", lambda: True)
    logging.configure(Log(), "extender", stream)
    structlog.get_logger().info("placeholder.submitted", job_id=4711)

    text = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert "[info     ] placeholder.submitted          job_id=4711" in text


def test_without_a_terminal_the_format_is_json(stream: io.StringIO) -> None:
    logging.configure(Log(), "extender", stream)
    structlog.get_logger().info("x")

    assert "x" == lines(stream)[0]["event"]


def test_a_second_configuration_replaces_the_first(stream: io.StringIO) -> None:
    log = structlog.get_logger()
    logging.configure(Log(), "one", io.StringIO())
    log.info("x")
    logging.configure(Log(), "two", stream)
    log.info("x")
    stdlib.getLogger("aiohttp").warning("x")

    assert ["two", "two"] == [line["program"] for line in lines(stream)]
