"""Flags and environment variables; each flag is a variable, too: `--top-users` is SLURM_EXPORTER_TOP_USERS.

The flags of SchedMD's slurm-exporter are accepted as they are.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

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
    options.urls = tuple(url.strip() for url in urls)
    options.token_file = options.token_file or environment.get("SLURM_JWT_FILE", "")
    options.ca_file = options.ca_file or environment.get("SLURMRESTD_CA", "")
    options.host, options.port = host.strip("[]"), int(port)
    options.log_level = _ZAP_LEVELS.get(options.log_level, options.log_level)
    options.limits = Limits(**_values(Limits, options))
    settings = Settings(**_values(Settings, options))
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


def _values(kind: type[Settings | Limits], options: argparse.Namespace) -> dict[str, Any]:
    return {field.name: getattr(options, field.name) for field in fields(kind)}


def _from_environment(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> list[str]:
    words = []
    for action in parser._actions:  # noqa: SLF001  # argparse has no other list of its flags
        flag = action.option_strings[0]
        value = environment.get(f"{PREFIX}{flag.strip('-').replace('-', '_').upper()}", "")
        if not value or action.dest in {"help", "version"}:
            continue
        if action.nargs == 0:
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


_DEFAULTS: Final = {
    field.name: field.default for kind in (Settings, Limits) for field in fields(kind)
}


class _Flag(NamedTuple):
    """The flag of one setting, which has the setting's default."""

    setting: str
    """A field of `Settings` or `Limits`."""
    form: str
    """The flag, others with the same meaning, and what its value is; a switch has no value."""
    words: str


_SLURM_FLAGS: Final = (
    _Flag("api", "--api VERSION", "speak only this version, such as v0.0.43 (default: the newest)"),
    _Flag("token_file", "--token-file FILE", "a Slurm JWT; read again when it changes"),
    _Flag("ca_file", "--ca-file FILE", "CAs to trust, for https"),
    _Flag("cert_file", "--cert-file FILE", "the certificate to present, for https"),
    _Flag("key_file", "--key-file FILE", "its key"),
    _Flag("interval_s", "--interval --cache-freq SPAN", "time between readings (default: 15s)"),
    _Flag("timeout_s", "--timeout SPAN", "deadline of a request (default: 10s)"),
    _Flag("stale_after_s", "--stale-after SPAN", "drop data that could not be refreshed for this long (default: five intervals)"),
    _Flag("look_rate", "--look-rate N", "read at most N jobs singly per second (default: 100)"),
    _Flag("reason_rate", "--reason-rate N", "read N pending jobs per second for their reasons; 0 for none (default: 20)"),
    _Flag("full_list_max", "--full-list-max N", "list all jobs at start-up if there are at most N (default: 20000)"),
    _Flag("max_backoff", "--max-backoff N", "poll at most N times less often while slurmctld is slow (default: 4)"),
    _Flag("has_accounting", "--no-accounting", "do not ask slurmdbd"),
)  # fmt: skip
_PAGE_FLAGS: Final = (
    _Flag("web_config_file", "--web-config-file --web.config.file FILE", "TLS, passwords and client certificates of those who scrape, in the format of Prometheus' exporter-toolkit; read again when it changes (default: everybody is served, by HTTP)"),
    _Flag("user_names", "--user-names", "series by user, and users' names in others (default: none)"),
    _Flag("top_users", "--top-users N", "with --user-names, series of their own for the N users with the most jobs; 0 for none (default: 100)"),
    _Flag("top_accounts", "--top-accounts N", "the same for accounts (default: 200)"),
    _Flag("node_series", "--no-node-series", "no series for single nodes"),
    _Flag("max_series", "--max-series N", "maximum number of series in one chapter of a page (default: 100000)"),
    _Flag("include", "--include REGEX", "serve only families whose name matches"),
    _Flag("exclude", "--exclude REGEX", "do not serve families whose name matches"),
    _Flag("cluster_label", "--cluster-label NAME", 'add the label cluster="NAME" to all series'),
)  # fmt: skip
_EFFICIENCY: Final = _Flag(
    "has_efficiency",
    "--efficiency",
    "read the record of each ended job from slurmdbd, for its CPU and memory usage",
)


def _add(group: argparse._ArgumentGroup, flag: _Flag) -> None:
    names = [word for word in flag.form.split() if word.startswith("-")]
    metavar = flag.form.rpartition(" ")[2]
    default = _DEFAULTS[flag.setting]
    if isinstance(default, bool):
        group.add_argument(
            *names, dest=flag.setting, action=f"store_{not default}".lower(), help=flag.words
        )
        return
    number = _count if isinstance(default, int) else _rate
    group.add_argument(
        *names,
        dest=flag.setting,
        type={"SPAN": span_s, "N": number}.get(metavar, str),
        metavar=metavar,
        default=default,
        help=flag.words,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="slurm-exporter",
        description="Serve Prometheus metrics of a Slurm, read through slurmrestd.",
        epilog="The token is read from --token-file, or from SLURM_JWT or SLURM_JWT_FILE. "
        f"Each flag is an environment variable, too: --web-config-file is {PREFIX}WEB_CONFIG_FILE.",
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
    for flag in _SLURM_FLAGS:
        _add(slurm, flag)
    pages = parser.add_argument_group("pages")
    pages.add_argument(
        "--listen",
        "--metrics-bind-address",
        default=f":{_DEFAULTS['port']}",
        metavar="[HOST]:PORT",
        help="where to serve (default: :8080)",
    )
    pages.add_argument(
        "--names",
        choices=tuple(catalogue.NAMES),
        default=_DEFAULTS["names"],
        help="the metric names of /metrics and --once (default: own)",
    )
    for flag in _PAGE_FLAGS:
        _add(pages, flag)
    pages.add_argument(
        "--job-info",
        type=_count,
        default=_DEFAULTS["job_info"],
        nargs="?",
        const=10_000,
        metavar="N",
        help="series for single jobs, at most N (default: none)",
    )
    _add(pages, _EFFICIENCY)
    other = parser.add_argument_group("other")
    other.add_argument(
        "--log-level",
        "--zap-log-level",
        choices=(*_LEVELS, *_ZAP_LEVELS),
        default=_DEFAULTS["log_level"],
        help="(default: info)",
    )
    for name in ("devel", "encoder", "stacktrace-level", "time-encoding"):
        other.add_argument(
            f"--zap-{name}", default="", nargs="?", const="true", help=argparse.SUPPRESS
        )
    return parser
