"""`python -m sandbox.hurried LEASE_S PROGRAM --config FILE`: a leader of ours in a hurry, as tests want it.

A killed one is followed after `LEASE_S`, and changes in Slurm, orphans and a broken webhook are seen within seconds.
"""

import importlib
import sys

from bridge.reconcile.program import Tempo
from slurmruntime.leading.lease import LeaseTimes


def main() -> int:
    """Run the program until a signal; return the exit code."""
    _, lease_s, program, *arguments = sys.argv
    sys.argv = [program, *arguments]
    exit_code: int = importlib.import_module(f"{program}.__main__").main(tempo(int(lease_s)))
    return exit_code


def tempo(lease_s: int) -> Tempo:
    """Return the tempo of a sandbox."""
    lease = LeaseTimes(
        duration_s=lease_s, renew_deadline_s=0.75 * lease_s, retry_period_s=lease_s / 8
    )
    return Tempo(lease=lease, slurm_nodes_s=1, orphans_s=2, self_test_s=10)


if __name__ == "__main__":
    sys.exit(main())
