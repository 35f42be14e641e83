"""Controllers of another Kubernetes cluster on the same Slurm, with settings of their own."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sandbox import chart, services
from sandbox.client import Sandbox


@contextmanager
def second_bridge(
    kube: Sandbox, slurm: Sandbox, folder: Path, controllers: Mapping[str, object]
) -> Iterator[None]:
    """Run them as a process; they end with the block.

    Args:
        kube: the cluster they serve.
        slurm: whose Slurm.
        folder: for their files.
        controllers: settings of that section.
    """
    settings = {
        "kubernetes": {"kubeconfig": str(kube.kubeconfig)},
        "slurm": {
            "url": slurm.slurmrestd_url,
            "token_file": str(slurm.token_file),
            "controller_host": "127.0.0.1",
            "controller_port": slurm.slurmctld_port,
        },
        "controllers": controllers,
        "health": {"listen": "127.0.0.1:0"},
    }
    config = folder / "config.json"
    config.write_text(json.dumps(settings))  # JSON is YAML
    chart.make_namespace(kube.instance)  # with the lease
    command = (*services.command(kube.instance.options, "controllers"), "--config", str(config))
    with (folder / "controllers.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
        assert process.poll() is None, (folder / "controllers.log").read_text()[-4000:]
    finally:
        process.terminate()
        process.wait()
