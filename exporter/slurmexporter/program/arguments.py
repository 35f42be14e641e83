"""Flags and environment variables; each flag is a variable, too: `--top-users` is SLURM_EXPORTER_TOP_USERS.

The flags of SchedMD's slurm-exporter are accepted as they are.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slurmexporter.families import catalogue
from slurmexporter.families.chapter import Limits
from slurmexporter.settings import Settings

PREFIX: Final = "SLURM_EXPORTER_"
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
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
    parts = _SPAN.findall(text)
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
    slurm.add_argument(
        "--api",
        default=default.api,
        metavar="VERSION",
        help="speak only this version, such as v0.0.43 (default: the newest)",
    )
    slurm.add_argument(
        "--token-file", default="", metavar="FILE", help="a Slurm JWT; read again when it changes"
    )
    slurm.add_argument("--ca-file", default="", metavar="FILE", help="CAs to trust, for https")
    slurm.add_argument(
        "--cert-file", default="", metavar="FILE", help="the certificate to present, for https"
    )
    slurm.add_argument("--key-file", default="", metavar="FILE", help="its key")
    slurm.add_argument(
        "--interval",
        "--cache-freq",
        type=span_s,
        default=default.interval_s,
        metavar="SPAN",
        help="time between readings (default: 15s)",
    )
    slurm.add_argument(
        "--timeout",
        type=span_s,
        default=default.timeout_s,
        metavar="SPAN",
        help="deadline of a request (default: 10s)",
    )
    slurm.add_argument(
        "--stale-after",
        type=span_s,
        default=0.0,
        metavar="SPAN",
        help="drop data that could not be refreshed for this long (default: five intervals)",
    )
    slurm.add_argument(
        "--look-rate",
        type=_rate,
        default=default.look_rate,
        metavar="N",
        help="read at most N jobs singly per second (default: 100)",
    )
    slurm.add_argument(
        "--reason-rate",
        type=_rate,
        default=default.reason_rate,
        metavar="N",
        help="read N pending jobs per second for their reasons; 0 for none (default: 20)",
    )
    slurm.add_argument(
        "--full-list-max",
        type=_count,
        default=default.full_list_max,
        metavar="N",
        help="list all jobs at start-up if there are at most N (default: 20000)",
    )
    slurm.add_argument(
        "--max-backoff",
        type=_rate,
        default=default.max_backoff,
        metavar="N",
        help="poll at most N times less often while slurmctld is slow (default: 4)",
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
    pages.add_argument(
        "--top-users",
        type=_count,
        default=default.limits.top_users,
        metavar="N",
        help="series of their own for the N users with the most jobs; 0 for none (default: 100)",
    )
    pages.add_argument(
        "--top-accounts",
        type=_count,
        default=default.limits.top_accounts,
        metavar="N",
        help="the same for accounts (default: 200)",
    )
    pages.add_argument("--no-node-series", action="store_true", help="no series for single nodes")
    pages.add_argument(
        "--max-series",
        type=_count,
        default=default.max_series,
        metavar="N",
        help="maximum number of series in one chapter of a page (default: 100000)",
    )
    pages.add_argument(
        "--include", default="", metavar="REGEX", help="serve only families whose name matches"
    )
    pages.add_argument(
        "--exclude", default="", metavar="REGEX", help="do not serve families whose name matches"
    )
    pages.add_argument(
        "--cluster-label",
        default="",
        metavar="NAME",
        help='add the label cluster="NAME" to all series',
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
