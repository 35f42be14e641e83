"""Check whether this machine can run a sandbox with real nodes."""

import os
from pathlib import Path

from sandbox import assets, running
from sandbox.assembly import needed
from sandbox.options import Options
from sandbox.realnodes import check
from sandbox.realnodes.check import Finding


def findings(state: Path, options: Options) -> tuple[Finding, ...]:
    """Return everything about the machine that is wrong or worth knowing; start nothing.

    Args:
        state: the folder that the sandbox would have.
        options: its options.
    """
    facts = check.gather(
        state.absolute(),
        nodes=options.real_nodes,
        wanted_network=options.real_network,
        assets=assets.where(needed(options)),
        environ=os.environ,
        is_alive=running.is_running,
    )
    return check.findings(facts)
