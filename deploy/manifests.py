"""Writes what is generated of the deployment: `python deploy/manifests.py`.

* In the chart's values, which kinds of object the extender may read, from the registration of the kinds of workload.
* `deploy/chart/files/slurmjob.yaml`: the definition of SlurmJob, from its types.
* `deploy/chart/files/sylabs.yaml`: those of Sylabs' kinds, from theirs.
* `deploy/operator/chart/files/crds`: the definitions of slurm-operator's kinds, from their types.
* `deploy/operator/chart/templates/rights.yaml`: slurm-operator's service account and roles.
* `deploy/operator/slurm-operator.yaml`: its chart's objects for those who have no helm.
* `deploy/manifests/slurm-bridge.yaml`: the chart's objects for those who have no helm.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from bridge.domain.workloads import kinds
from deploy.job_definition import definition
from deploy.operator_rights import common, serving
from deploy.sylabs_definitions import definitions
from sandbox import assets
from slurmoperator.objects import definitions as cluster_definitions
from slurmruntime.values import names

DEPLOY = Path(__file__).parent
FILE = DEPLOY / "manifests/slurm-bridge.yaml"
VALUES = DEPLOY / "manifests/values.yaml"
CHART_VALUES = DEPLOY / "chart/values.yaml"
SLURM_JOB = DEPLOY / "chart/files/slurmjob.yaml"
SYLABS = DEPLOY / "chart/files/sylabs.yaml"
OPERATOR_CHART = DEPLOY / "operator/chart"
OPERATOR_FILE = DEPLOY / "operator/slurm-operator.yaml"
CLUSTER_KINDS = OPERATOR_CHART / "files/crds"
OPERATOR_RIGHTS = OPERATOR_CHART / "templates/rights.yaml"

_KINDS = re.compile(r"(?<=^  workloadKinds:\n)(?: {4}.*\n)+", re.MULTILINE)
"""The lines of that list."""

_HEAD = """\
# The chart with deploy/manifests/values.yaml, for Kubernetes 1.30 and newer. Generated: make manifests
#
#   kubectl create namespace slurm-bridge-system
#   kubectl -n slurm-bridge-system create secret generic slurm-token --from-file=token=./token
#   kubectl apply --server-side -f slurm-bridge.yaml
#
# after the two images and slurm.url in the ConfigMap have been set to yours.
"""

_OPERATOR_HEAD = """\
# slurm-operator's chart with its own values, for Kubernetes 1.30 and newer. Generated: make manifests
#
#   kubectl create namespace slurm-bridge-system
#   kubectl apply --server-side -f slurm-operator.yaml
#
# after the image and the settings in the ConfigMap have been set to yours.
"""


def chart_values(text: str) -> str:
    """Return the chart's values with the list of kinds as they are registered.

    Raises:
        ValueError: the list is not there.
    """
    if len(_KINDS.findall(text)) != 1:
        raise ValueError(f"{CHART_VALUES}: expected one list extender.workloadKinds, found none")
    listed = (
        f"    - apiGroup: {group}\n      resources: [{', '.join(resources)}]\n"
        for group, resources in kinds.reads().items()
    )
    return _KINDS.sub("".join(listed), text)


def slurm_job() -> str:
    """Return the definition of SlurmJob."""
    return f"# Generated from the types in slurmjobs/objects: make manifests\n{_kept(definition())}"


def sylabs() -> str:
    """Return the definitions of Sylabs' kinds."""
    texts = "---\n".join(map(_kept, definitions()))
    return f"# Generated from the types in slurmjobs/sylabs: make manifests\n{texts}"


def _kept(made: dict[str, Any]) -> str:
    """Return a definition as YAML; Helm keeps it, as it would take all objects with it."""
    made["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    apart = json.loads(json.dumps(made))  # nothing twice: no anchors
    return yaml.safe_dump(apart, sort_keys=False, allow_unicode=True, width=120)


def cluster_kinds() -> dict[Path, str]:
    """Return the definitions of slurm-operator's kinds, by file."""
    head = "# Generated from the types in slurmoperator/objects: make manifests\n"
    return {
        CLUSTER_KINDS / f"{each['metadata']['name']}.yaml": head + _kept(each)
        for each in cluster_definitions.definitions()
    }


def operator_rights() -> str:
    """Return the chart's template of slurm-operator's service account and roles."""
    head = "# Generated from deploy/operator_rights.py: make manifests\n"
    release = "{{ $.Release.Namespace }}"
    each = "{{- range .Values.namespaces }}\n---\n" + _dumped(serving(release, ["{{ . }}"]))
    whole = "{{- else }}\n---\n" + _dumped(serving(release, ()))
    return f"{head}{_dumped(common(release))}{each}{whole}{{{{- end }}}}\n"


def _dumped(objects: Sequence[dict[str, Any]]) -> str:
    apart = json.loads(json.dumps(objects))  # nothing twice: no anchors
    return yaml.safe_dump_all(apart, sort_keys=False, allow_unicode=True, width=120)


def rendered(helm: str) -> str:
    """Return the bridge's file."""
    return _HEAD + _template(helm, "slurm-bridge", DEPLOY / "chart", "--values", str(VALUES))


def operator_rendered(helm: str) -> str:
    """Return slurm-operator's file."""
    return _OPERATOR_HEAD + _template(helm, "slurm-operator", OPERATOR_CHART)


def _template(helm: str, release: str, chart: Path, *arguments: str) -> str:
    command = (helm, "template", release, str(chart), "--namespace", names.RELEASE_NAMESPACE)
    done = subprocess.run(
        (*command, *arguments, "--kube-version", "1.30.0"),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    CHART_VALUES.write_text(chart_values(CHART_VALUES.read_text()))
    SLURM_JOB.write_text(slurm_job())
    SYLABS.write_text(sylabs())
    for file, text in cluster_kinds().items():
        file.write_text(text)
    OPERATOR_RIGHTS.write_text(operator_rights())
    with assets.shown(sys.stderr) as report:
        found = assets.resolve(assets.AssetName.HELM, report=report)
    FILE.write_text(rendered(str(found.bin / "helm")))
    OPERATOR_FILE.write_text(operator_rendered(str(found.bin / "helm")))
