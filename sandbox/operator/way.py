"""What a cluster has and this host lacks: the way to slurmrestd in its pod, and a token of that Slurm.

    python -m sandbox.operator.way KUBECTL NAMESPACE/CONTROLLER PORT TOKEN-FILE

In a cluster the operator's pod reaches a RestApi by its Service, and its administrator puts a token into a Secret. Here this
program forwards a port of the host to the RestApi that is called like the Controller, and renews the token in a file.
"""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

from sandbox.instance import write_private

_RENEWED_EVERY_S = 3600.0
_LIFETIME_S = 4 * 3600
_PAUSE_S = 1.0
_TIMEOUT_S = 20.0
_REST_PORT = 6820


def main() -> None:
    """Keep the way open until killed; pods come and go."""
    kubectl, controller, port, token_file = sys.argv[1:]
    namespace, _, name = controller.partition("/")
    within = (kubectl, "--namespace", namespace)
    forward = ("port-forward", f"deployment/{name}-restapi", f"{port}:{_REST_PORT}")
    while True:
        if token := _token(within, name):
            write_private(Path(token_file), token)
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run((*within, *forward), check=False, timeout=_RENEWED_EVERY_S)
        time.sleep(_PAUSE_S)


def _token(within: tuple[str, ...], controller: str) -> str:
    """Return a token of SlurmUser; "" while there is no slurmctld."""
    pod = ("exec", f"{controller}-controller-0", "-c", "slurmctld", "--")
    asks = ("scontrol", "token", "username=slurm", f"lifespan={_LIFETIME_S}")
    try:
        done = subprocess.run(
            (*within, *pod, *asks), capture_output=True, text=True, check=True, timeout=_TIMEOUT_S
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().removeprefix("SLURM_JWT=")


if __name__ == "__main__":
    main()
