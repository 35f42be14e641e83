"""The command `slurmc`, which needs the extra `cli` (typer and rich).

`entry` checks that the extra is installed, `commands` has the commands, `kinds` the objects they list,
`rendering` prints.
"""

from slurmclient.cli.entry import main

__all__ = ["main"]
