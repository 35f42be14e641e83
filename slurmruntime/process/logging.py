"""Structured logs on standard error: ours and every library's, one JSON object per line; text on a terminal.

Ours go straight to structlog. Records that libraries send to the standard `logging` pass the same
processors, but only from level warning: at debug level, kubernetes_asyncio logs whole responses,
including Secrets. Times are ISO 8601 in UTC. Values under keys that end in token, password, … are
redacted, as is anything that looks like a JWT. Values are truncated to 4 kB, as objects may
contain any text; a traceback loses its beginning.
"""

import logging
import re
import sys
from collections.abc import Mapping
from itertools import islice
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from slurmruntime.settings.sections import Log
from slurmruntime.values import faults

REDACTED = "[redacted]"

_SECRET_KEY = re.compile(
    r"(?:^|[-_])(token|password|passwd|secret|authorization|cookie|credentials?|jwt|key_data)$",
    re.IGNORECASE,
)
_LONGEST_TRACEBACK = 16 * 1024
_MOST_ITEMS = 100

_JWT = re.compile(r"eyJ[\w-]{6,}+(\.[\w-]{6,}+\.[\w-]*+)?")
"""A token, or a word that only begins like one: so each word is read at most twice."""

_LEVELS = logging.getLevelNamesMapping()


def configure(settings: Log, program: str, stream: TextIO | None = None) -> None:
    """Configure both kinds of logger, on standard error unless a test wants to read the output; may be called again."""
    out = stream or sys.stderr
    as_text = out.isatty()

    def add_program(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event.setdefault("program", program)
        return event

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_program,
        structlog.processors.StackInfoRenderer(),
    ]
    rendering: list[Processor] = [
        structlog.processors.format_exc_info,  # not rich's: it prints local variables, even tokens
        redact,
        shorten,  # after: half a token would not look like one
        structlog.dev.ConsoleRenderer(
            colors=True, exception_formatter=structlog.dev.plain_traceback
        )
        if as_text
        else structlog.processors.JSONRenderer(default=str),
    ]
    structlog.configure(
        processors=[*shared, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(out),
        # structlog.testing.capture_logs and a second configure() need uncached loggers
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(logging.WARNING, _LEVELS[settings.level.upper()]))


def shorten(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Truncate long values (a structlog processor)."""
    for key, value in event.items():
        if key == "exception" and isinstance(value, str):
            event[key] = value[-_LONGEST_TRACEBACK:]
        elif isinstance(value, str):
            event[key] = faults.published(value)
        elif isinstance(value, list | tuple | dict | set | frozenset):
            text = repr(list(islice(value, _MOST_ITEMS)))
            if len(value) > _MOST_ITEMS or len(text) > faults.LONGEST_TEXT:
                event[key] = faults.shortened(text)
    return event


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Redact secrets (a structlog processor)."""
    for key, value in event.items():
        event[key] = _hide(key, value)
    return event


def _hide(key: str, value: object) -> object:
    if value and _SECRET_KEY.search(key):
        return REDACTED
    if isinstance(value, str):
        return _JWT.sub(lambda word: REDACTED if word[1] else word[0], value)
    if isinstance(value, Mapping):
        return {inner: _hide(str(inner), item) for inner, item in value.items()}
    return value
