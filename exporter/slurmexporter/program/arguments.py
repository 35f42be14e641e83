"""Flags and environment variables; each flag is a variable, too: `--top-users` is SLURM_EXPORTER_TOP_USERS.

The flags of SchedMD's slurm-exporter are accepted as they are.
"""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from slurmexporter.families import catalogue
from slurmexporter.families.chapter import Limits
from slurmexporter.settings import Settings

PREFIX: Final = "SLURM_EXPORTER_"
_SPAN_PARTS: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_LAST_PORT: Final = 65535
_LEVELS: Final = ("debug", "info", "warning", "error")
_ZAP_LEVELS: Final = {"panic": "error", "warn": "warning"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to do, and how."""

    settings: Settings
    is_check: bool = False
    is_once: bool = False


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Command:
    """Parse the command line; the environment supplies flags that it lacks.

    Args:
        environment: SLURM_EXPORTER_… for each flag, SLURMRESTD_URL for `--server`.

    Raises:
        SystemExit: If a word is not understood; the message names it and what was expected.
    """
    parser = _parser()
    words = [*_from_environment(parser, environment), *arguments]
    options = parser.parse_args(words)
    urls = [url for servers in options.server for url in servers.split(",") if url]
    if not urls:
        urls = [url for url in environment.get("SLURMRESTD_URL", "").split(",") if url]
    if not urls:
        parser.error("expected --server URL or SLURMRESTD_URL, such as http://HOST:6820")
    host, _, port = options.listen.rpartition(":")
    if not port.isdecimal() or int(port) > _LAST_PORT:
        parser.error(f"--listen: expected HOST:PORT or :PORT, got {options.listen!r}")
    for flag in ("include", "exclude"):
        try:
            re.compile(getattr(options, flag))
        except re.error as error:
            parser.error(f"--{flag}: expected a regular expression: {error}")
    settings = Settings(
        urls=tuple(url.strip() for url in urls),
        api=options.api,
        token_file=options.token_file or environment.get("SLURM_JWT_FILE", ""),
        ca_file=options.ca_file or environment.get("SLURMRESTD_CA", ""),
        cert_file=options.cert_file,
        key_file=options.key_file,
        host=host.strip("[]"),
        port=int(port),
        names=options.names,
        interval_s=options.interval,
        timeout_s=options.timeout,
        stale_after_s=options.stale_after,
        look_rate=options.look_rate,
        reason_rate=options.reason_rate,
        full_list_max=options.full_list_max,
        max_backoff=options.max_backoff,
        max_series=options.max_series,
        job_info=options.job_info,
        has_efficiency=options.efficiency,
        has_accounting=not options.no_accounting,
        cluster_label=options.cluster_label,
        include=options.include,
        exclude=options.exclude,
        log_level=_ZAP_LEVELS.get(options.log_level, options.log_level),
        limits=Limits(
            top_users=options.top_users,
            top_accounts=options.top_accounts,
            node_series=not options.no_node_series,
        ),
    )
    return Command(settings=settings, is_check=options.check, is_once=options.once)


def span_s(text: str) -> float:
    """Convert a time span such as `15`, `15s`, `1m30s` or `500ms` to seconds.

    Raises:
        argparse.ArgumentTypeError: If it is not a time span, or not positive.
    """
    parts = _SPAN_PARTS.findall(text)
    seconds = sum(float(amount) * _UNITS_S[unit] for amount, unit in parts)
    if "".join(f"{amount}{unit}" for amount, unit in parts) != text or seconds <= 0:
        raise argparse.ArgumentTypeError(f"expected a span such as 15s or 1m30s, got {text!r}")
    return seconds


def _from_environment(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> list[str]:
    words = []
    for action in parser._actions:  # noqa: SLF001  # argparse has no other list of its flags
        flag = action.option_strings[-1] if action.option_strings else ""
        value = environment.get(f"{PREFIX}{action.dest.upper()}", "")
        if not value or action.dest in {"help", "version"}:
            continue
        if isinstance(action, argparse._StoreTrueAction):  # noqa: SLF001  # see above
            if value.lower() in {"1", "true", "yes"}:
                words.append(flag)
        else:
            words.append(f"{flag}={value}")
    return words


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}")
    return rate


class _Form(NamedTuple):
    read: Callable[[str], object]
    metavar: str


_SPAN: Final = _Form(span_s, "SPAN")
_COUNT: Final = _Form(_count, "N")
_RATE: Final = _Form(_rate, "N")
_FILE: Final = _Form(str, "FILE")
_REGEX: Final = _Form(str, "REGEX")


def _add(
    group: argparse._ArgumentGroup, form: _Form, flags: str, default: object, words: str
) -> None:
    group.add_argument(
        *flags.split(), type=form.read, metavar=form.metavar, default=default, help=words
    )


def _parser() -> argparse.ArgumentParser:
    default = Settings()
    parser = argparse.ArgumentParser(
        prog="slurm-exporter",
        description="Serve Prometheus metrics of a Slurm, read through slurmrestd.",
        epilog="The token is read from --token-file, or from SLURM_JWT or SLURM_JWT_FILE. "
        f"Each flag is an environment variable, too: --top-users is {PREFIX}TOP_USERS.",
        allow_abbrev=False,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--check", action="store_true", help="report what works with this Slurm, and exit"
    )
    what.add_argument("--once", action="store_true", help="print one page, and exit")
    slurm = parser.add_argument_group("Slurm")
    slurm.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="URL",
        help="slurmrestd: http://HOST:6820, https://… or unix:///PATH; repeat it for fail-over"
        " (default: SLURMRESTD_URL)",
    )
    _add(
        slurm,
        _Form(str, "VERSION"),
        "--api",
        default.api,
        "speak only this version, such as v0.0.43 (default: the newest)",
    )
    _add(slurm, _FILE, "--token-file", "", "a Slurm JWT; read again when it changes")
    _add(slurm, _FILE, "--ca-file", "", "CAs to trust, for https")
    _add(slurm, _FILE, "--cert-file", "", "the certificate to present, for https")
    _add(slurm, _FILE, "--key-file", "", "its key")
    _add(
        slurm,
        _SPAN,
        "--interval --cache-freq",
        default.interval_s,
        "time between readings (default: 15s)",
    )
    _add(slurm, _SPAN, "--timeout", default.timeout_s, "deadline of a request (default: 10s)")
    _add(
        slurm,
        _SPAN,
        "--stale-after",
        0.0,
        "drop data that could not be refreshed for this long (default: five intervals)",
    )
    _add(
        slurm,
        _RATE,
        "--look-rate",
        default.look_rate,
        "read at most N jobs singly per second (default: 100)",
    )
    _add(
        slurm,
        _RATE,
        "--reason-rate",
        default.reason_rate,
        "read N pending jobs per second for their reasons; 0 for none (default: 20)",
    )
    _add(
        slurm,
        _COUNT,
        "--full-list-max",
        default.full_list_max,
        "list all jobs at start-up if there are at most N (default: 20000)",
    )
    _add(
        slurm,
        _RATE,
        "--max-backoff",
        default.max_backoff,
        "poll at most N times less often while slurmctld is slow (default: 4)",
    )
    slurm.add_argument("--no-accounting", action="store_true", help="do not ask slurmdbd")
    pages = parser.add_argument_group("pages")
    pages.add_argument(
        "--listen",
        "--metrics-bind-address",
        default=f":{default.port}",
        metavar="[HOST]:PORT",
        help="where to serve (default: :8080)",
    )
    pages.add_argument(
        "--names",
        choices=tuple(catalogue.NAMES),
        default=default.names,
        help="the metric names of /metrics and --once (default: own)",
    )
    _add(
        pages,
        _COUNT,
        "--top-users",
        default.limits.top_users,
        "series of their own for the N users with the most jobs; 0 for none (default: 100)",
    )
    _add(
        pages,
        _COUNT,
        "--top-accounts",
        default.limits.top_accounts,
        "the same for accounts (default: 200)",
    )
    pages.add_argument("--no-node-series", action="store_true", help="no series for single nodes")
    _add(
        pages,
        _COUNT,
        "--max-series",
        default.max_series,
        "maximum number of series in one chapter of a page (default: 100000)",
    )
    _add(pages, _REGEX, "--include", "", "serve only families whose name matches")
    _add(pages, _REGEX, "--exclude", "", "do not serve families whose name matches")
    _add(
        pages,
        _Form(str, "NAME"),
        "--cluster-label",
        "",
        'add the label cluster="NAME" to all series',
    )
    pages.add_argument(
        "--job-info",
        type=_count,
        default=0,
        nargs="?",
        const=10_000,
        metavar="N",
        help="series for single jobs, at most N (default: none)",
    )
    pages.add_argument(
        "--efficiency",
        action="store_true",
        help="read the record of each ended job from slurmdbd, for its CPU and memory usage",
    )
    other = parser.add_argument_group("other")
    other.add_argument(
        "--log-level",
        "--zap-log-level",
        choices=(*_LEVELS, *_ZAP_LEVELS),
        default=default.log_level,
        help="(default: info)",
    )
    for name in ("devel", "encoder", "stacktrace-level", "time-encoding"):
        other.add_argument(
            f"--zap-{name}", default="", nargs="?", const="true", help=argparse.SUPPRESS
        )
    return parser  # fmt: skip
