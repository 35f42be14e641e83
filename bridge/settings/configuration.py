"""Find and read a program's settings: command line, file, environment, mounted files."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.settings import reference
from bridge.settings.schema import ENV_PREFIX, Settings
from slurmruntime.settings import sources as settings_sources

SECRETS_DIR_VARIABLE = "SLURM_BRIDGE_SECRETS_DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of a program's settings; they can be read repeatedly."""

    config: Path | None
    secrets_dir: Path | None

    def read(self) -> Settings:
        """Return the settings as all sources have them now.

        Raises:
            settings_sources.Invalid: with every fault.
        """
        return settings_sources.read(
            Settings,
            config=self.config,
            environment=os.environ,
            prefix=ENV_PREFIX,
            secrets_dir=self.secrets_dir,
        )


def load(program: str, argv: Sequence[str]) -> Settings:
    """Return a program's settings from the sources that `sources` finds.

    Exit with code 2 and every fault on standard error, or with 0 after `--help`.
    """
    try:
        return sources(program, argv).read()
    except settings_sources.Invalid as error:
        lines = (f"{program}: the settings have faults:", *error.faults)
        sys.stderr.write("\n  ".join(lines) + f"\nAll settings: {program} --help\n")
        sys.exit(2)


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
    arguments = parser.parse_args(argv)
    return Sources(config=arguments.config, secrets_dir=arguments.secrets_dir)
