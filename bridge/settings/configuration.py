"""Find and read a program's settings: command line, file, environment, mounted files."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from bridge.settings import reference, removed
from bridge.settings.schema import ENV_PREFIX, Settings
from slurmruntime.process import logging
from slurmruntime.settings import sources as settings_sources

_log = structlog.get_logger(__name__)

SECRETS_DIR_VARIABLE = "SLURM_BRIDGE_SECRETS_DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What whoever starts the program knows of the installation: the chart, which writes it on the command line."""

    release: str = ""
    """Prefix of the Secrets and webhook configurations for which the controllers sign certificates; "": they sign none."""
    hosts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Component -> names and addresses in its certificate; a component without any is a client."""
    self_test_namespace: str = ""
    """Where the controllers test the webhook by dry runs; "": nowhere."""
    companion_account: str = ""
    """The user that creates companions of SlurmJobs, a service account that the controllers may impersonate; "": no companions."""
    node: str = ""
    """The node that an agent is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of a program's settings; they can be read repeatedly."""

    program: str
    config: Path | None
    secrets_dir: Path | None
    installation: Installation = Installation()  # is immutable

    def read(self, outdated: list[str] | None = None) -> Settings:
        """Return the settings as all sources have them now; add a line about each old name to `outdated`.

        Raises:
            settings_sources.Invalid: with every fault.
        """
        lines = [] if outdated is None else outdated
        return settings_sources.read(
            Settings,
            config=self.config,
            environment=os.environ,
            prefix=ENV_PREFIX,
            secrets_dir=self.secrets_dir,
            adapt=lambda values: lines.extend(removed.adapt(values, self.program)),
        )


def load(program: str, argv: Sequence[str], *, log_name: str = "") -> Settings:
    """Return a program's settings from the sources that `sources` finds, and begin to log as they say.

    Exit with code 2 and every fault on standard error, or with 0 after `--help`.

    Args:
        log_name: the program's name in the log, if that is another one.
    """
    outdated: list[str] = []
    try:
        settings = sources(program, argv).read(outdated)
    except settings_sources.Invalid as error:
        lines = (f"{program}: the settings have faults:", *error.faults)
        sys.stderr.write("\n  ".join(lines) + f"\nAll settings: {program} --help\n")
        sys.exit(2)
    logging.configure(settings.log, log_name or program)
    if outdated:
        _log.warning("settings.outdated", settings=outdated)
    return settings


_OF_THE_INSTALLATION: Final = (
    ("--release", "NAME", "prefix of the Secrets to sign certificates for; none: not signed here"),
    ("--self-test-namespace", "NAME", "where the webhook is tested by dry runs; none: nowhere"),
    ("--companion-account", "USER", "who creates companions of SlurmJobs; none: no companions"),
    ("--node", "NAME", "the node that the agent is on"),
)


def _hosts(text: str) -> Mapping[str, Sequence[str]]:
    """Read a map of lists of text.

    Raises:
        ValueError: it is anything else, or no JSON.
    """
    hosts = json.loads(text)
    if not isinstance(hosts, dict) or not all(isinstance(names, list) for names in hosts.values()):
        raise ValueError(text)
    return hosts


def sources(program: str, argv: Sequence[str]) -> Sources:
    """Return the sources named by the command line; `argv` excludes the program's name.

    Exit with code 2 if the command line is invalid, or with 0 after `--help`.
    """
    parser = argparse.ArgumentParser(
        prog=program,
        usage="%(prog)s [--config FILE] [--secrets-dir DIR]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=reference.plain_text(Settings),
        allow_abbrev=False,
    )
    parser.add_argument("--config", metavar="FILE", type=Path, help="YAML file with settings")
    parser.add_argument(
        "--secrets-dir",
        metavar="DIR",
        type=Path,
        default=os.environ.get(SECRETS_DIR_VARIABLE) or None,
        help=f"directory of files named section__field, one value each [{SECRETS_DIR_VARIABLE}]",
    )
    chart = parser.add_argument_group("set by the chart")
    for option, metavar, meaning in _OF_THE_INSTALLATION:
        chart.add_argument(option, metavar=metavar, default="", help=meaning)
    chart.add_argument(
        "--hosts", metavar="JSON", type=_hosts, default={}, help="names and addresses to sign for"
    )
    values = vars(parser.parse_args(argv))
    config, secrets_dir = values.pop("config"), values.pop("secrets_dir")
    return Sources(
        program=program,
        config=config,
        secrets_dir=secrets_dir,
        installation=Installation(**values),
    )
