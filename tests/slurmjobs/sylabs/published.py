"""The manifests that Sylabs and DP Technology published, word for word, and what becomes of each."""

from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A manifest."""

    text: str
    fault: str = ""
    """The field that it is refused for; "" if it runs."""
    only_reviewed: bool = False
    """The definition alone takes it."""

    @property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load(self.text)
        return found


_COW = """\
  batch: |
    #!/bin/sh
    {header}
    srun singularity pull {unsigned}library://sylabsed/examples/lolcow
    srun singularity run lolcow_latest.sif
    srun rm lolcow_latest.sif
  nodeSelector:
    {group}/containers: singularity
  results:
    {source}mount:
      name: data
      hostPath:
        path: /home/vagrant/job-results
        type: DirectoryOrCreate
"""

_HEAD = """\
apiVersion: {group}/v1alpha1
kind: {kind}
metadata:
  name: {name}
spec:
"""


def _manifest(
    name: str, spec: str, *, group: str = "slurm.sylabs.io", kind: str = "SlurmJob"
) -> str:
    return _HEAD.format(group=group, kind=kind, name=name) + spec


_BATCH = """\
  batch: |
    #!/bin/sh
    {header}
    srun sleep 5
    srun hostname
{more}  nodeSelector:
    {label}
"""

PUBLISHED = {
    "seed": Published(
        text=_manifest("example-slurmjob", "  batch: hostname\n"),
        fault="spec.batch",  # sbatch refuses a script without an interpreter, too
    ),
    "first-batch": Published(
        text=_manifest(
            "slurm-batch-example",
            _BATCH.format(
                header="##SBATCH --nodes=1",
                more="  timeLimit: 20\n",
                label="slurm.sylabs.io/cuda: '10'",
            ),
        )
    ),
    "batch": Published(
        text=_manifest(
            "slurm-batch-example",
            _BATCH.format(header="#SBATCH --nodes=1", more="", label="slurm.sylabs.io/cuda: 10"),
        )
    ),
    "wlm-batch": Published(
        text=_manifest(
            "slurm-batch-example",
            _BATCH.format(header="#SBATCH --nodes=1", more="", label="wlm.sylabs.io/cuda: 10"),
            group="wlm.sylabs.io",
        )
    ),
    "first-cow": Published(
        text=_manifest(
            "cow",
            _COW.format(
                header="##SBATCH --nodes=1 --cpus-per-task=1",
                unsigned="",
                group="slurm.sylabs.io",
                source="from: slurm-4.out # can be omitted\n    ",
            ),
        )
    ),
    "cow": Published(
        text=_manifest(
            "cow",
            _COW.format(
                header="#SBATCH --nodes=1\n    #SBATCH --output cow.out",
                unsigned="-U ",
                group="wlm.sylabs.io",
                source="from: cow.out\n    ",
            ),
            group="wlm.sylabs.io",
        )
    ),
    "cow-ssh": Published(
        text=_manifest(
            "cow",
            _COW.format(
                header="##SBATCH --nodes=1 --cpus-per-task=1",
                unsigned="",
                group="slurm.sylabs.io",
                source="",
            )
            + "  ssh:\n    user: vagrant\n    key:\n      secretKeyRef:\n        name: slurm\n        key: key\n",
        )
    ),
    "fox": Published(
        text=_manifest(
            "fox",
            """\
  batch: |
    #!/bin/bash
    #SBATCH -J singularity-mpi
    #SBATCH -N 2 # total number of nodes
    #SBATCH --time=00:05:00
    git clone https://bitbucket.org/sashayakovtseva/foxs-algorithm.git fox
    singularity pull -U mpich.sif library://sashayakovtseva/default/mpich:3.1.4
    singularity exec mpich.sif make -C fox
    mpirun -n 9 singularity exec --pwd $PWD/fox mpich.sif ./main
    mkdir fox-result
    cp fox/A.txt fox-result
    cp fox/B.txt fox-result
    cp fox/C.txt fox-result
    cp fox/log* fox-result
    tar -czvf fox-result.tar.gz fox-result
    rm mpich.sif
    rm -rf fox-result
    rm -rf fox
  nodeSelector:
    slurm.sylabs.io/containers: singularity
  results:
    from: fox-result.tar.gz
    mount:
      name: nfs-storage
      nfs:
        server: 192.168.1.41
        path: /var/nfsshare/results
""",
        )
    ),
    "prepare-and-results": Published(
        text=_manifest(
            "prepare-and-results",
            """\
  batch: |
    #!/bin/sh
    #SBATCH --nodes=1
    echo Hello
    mkdir bar
    cp inputs/foo.txt bar/output.txt
    echo slurm >> bar/output.txt
  nodeSelector:
    kubernetes.io/hostname: slurm-minikube-cpu
  prepare:
    to: .
    mount:
      name: inputs
      hostPath:
        path: /home/docker/inputs
        type: DirectoryOrCreate
  results:
    from: bar
    mount:
      name: outputs
      hostPath:
        path: /home/docker/outputs
        type: DirectoryOrCreate
""",
            group="wlm.sylabs.io",
        ),
        fault="spec.prepare",  # it would end well without its input, as nothing is copied yet
        only_reviewed=True,
    ),
    "wlm-cow": Published(
        text=_manifest(
            "lolcow",
            "  image: library://sylabsed/examples/lolcow:latest\n  options:\n    allowUnsigned: true\n",
            group="wlm.sylabs.io",
            kind="WlmJob",
        )
    ),
}
