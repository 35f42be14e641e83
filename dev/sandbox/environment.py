"""`DIR/env`: the variables with which a shell uses the sandbox."""

import os
import shlex
import sys
from pathlib import Path

import bridge
from sandbox import slurm_rest
from sandbox.instance import Instance, write_private


def variables(instance: Instance) -> dict[str, str]:
    """Return the exports except PATH."""
    options = instance.options
    exports: dict[str, str] = {}
    if options.kubernetes:
        exports["KUBECONFIG"] = str(instance.kubeconfig)
    if options.slurm:
        exports["SLURM_CONF"] = str(instance.slurm_conf)
        exports["SLURM_JWT"] = slurm_rest.token_file(instance).read_text()
        exports["SLURMRESTD_URL"] = instance.url("slurmrestd")
    if options.bridge:
        for service in options.services:
            url = f"{instance.url(f'{service}-health')}/metrics"
            exports[f"SLURM_BRIDGE_METRICS_{service.upper()}"] = url
    return exports


def write(instance: Instance) -> None:
    """Write `DIR/env`, to be sourced by `. DIR/env`."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables(instance).items()]
    lines.append(f"export PATH={shlex.quote(str(instance.bin))}:$PATH")
    write_private(instance.env_file, "".join(f"{line}\n" for line in lines))


def write_plugin(instance: Instance) -> None:
    """Put `kubectl-slurm` beside kubectl: the plugin of this very checkout."""
    code = "from slurmcli.plugin import main; main()"
    command = shlex.join(("exec", sys.executable, "-c", code))
    where = shlex.quote(str(Path(bridge.__file__).parents[1]))
    path = instance.bin / "kubectl-slurm"
    path.write_text(f'#!/bin/sh\nexport PYTHONPATH={where}\n{command} "$@"\n')
    path.chmod(0o755)


def for_commands(instance: Instance) -> dict[str, str]:
    """Return the same for a child process."""
    path = os.environ.get("PATH", "/usr/bin:/bin")
    return {**variables(instance), "PATH": f"{instance.bin}:{path}", "HOME": str(instance.root)}
