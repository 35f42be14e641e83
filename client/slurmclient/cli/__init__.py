"""The command `slurmc`, which needs the extra `cli` (typer and rich).

`entry` checks that the extra is installed, `commands` has the commands, `kinds` the objects they list,
`fields` parses FIELD=VALUE, `rendering` prints, `advice` tells the user what to do about an error.
"""

from slurmclient.cli.entry import main

__all__ = ["main"]
