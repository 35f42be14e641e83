"""Writes `deploy/manifests/slurm-bridge.yaml`: the chart's objects for who has no helm. `python deploy/manifests.py`."""

import subprocess
import sys
from pathlib import Path

from sandbox import assets

DEPLOY = Path(__file__).parent
FILE = DEPLOY / "manifests/slurm-bridge.yaml"
VALUES = DEPLOY / "manifests/values.yaml"

_HEAD = """\
# The chart with deploy/manifests/values.yaml, for Kubernetes 1.30 and newer. Generated: make manifests
#
#   kubectl create namespace slurm-bridge
#   kubectl -n slurm-bridge create secret generic slurm-token --from-file=token=./token
#   kubectl apply --server-side -f slurm-bridge.yaml
#
# after the two images and slurm.url in the ConfigMap have been set to yours.
"""


def rendered(helm: str) -> str:
    """The file's text."""
    chart = str(DEPLOY / "chart")
    command = (helm, "template", "slurm-bridge", chart, "--namespace", "slurm-bridge")
    done = subprocess.run(
        (*command, "--values", str(VALUES), "--kube-version", "1.30.0"),
        capture_output=True,
        text=True,
        check=True,
    )
    return _HEAD + done.stdout


if __name__ == "__main__":
    with assets.shown(sys.stderr) as report:
        found = assets.resolve(assets.AssetName.HELM, report=report)
    FILE.write_text(rendered(str(found.bin / "helm")))
