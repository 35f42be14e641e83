"""The command `slurmc`, which needs the extra `cli` (typer and rich).

`entry` checks that the extra is installed, `commands` has the commands, `kinds` what they can list,
`fields` reads FIELD=VALUE, `rendering` prints, `advice` says what to do about an error.
"""

from slurmclient.cli.entry import main

__all__ = ["main"]
