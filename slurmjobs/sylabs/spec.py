"""The fields of Sylabs' kinds in their last versions, plus one that only an example of theirs uses."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from slurmjobs.objects.spec import LONGEST_SCRIPT
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.crd.fields import ObjectStruct, text
from slurmruntime.model.objects import JsonDict

MOST_LABELS: Final = 64
MOST_RESOURCES: Final = 64
MOST_BINDS: Final = 64

_LINE = r"^[^\x00-\x1f\x7f]*$"
"""One line of text, as it becomes part of a script."""

Labels = JsonDict
"""Values are often written without quotes, such as 10; anything but text or a number is a fault."""


class VolumePath(ObjectStruct, frozen=True):
    """`v1 HostPathVolumeSource`."""

    path: Annotated[str, text(4096, "The directory.")]
    type: Annotated[str, text(64, "As in a pod's volume.")] = ""


class VolumeServer(ObjectStruct, frozen=True):
    """`v1 NFSVolumeSource`."""

    server: Annotated[str, text(253, "The server.")]
    path: Annotated[str, text(4096, "The directory there.")]
    read_only: Annotated[bool, Meta(description="As in a pod's volume.")] = False


class ClaimSource(ObjectStruct, frozen=True):
    """`v1 PersistentVolumeClaimVolumeSource`."""

    claim_name: Annotated[str, text(253, "Name of the claim, in the same namespace.")]
    read_only: Annotated[bool, Meta(description="As in a pod's volume.")] = False


class Mount(ObjectStruct, frozen=True):
    """The kinds of `v1 Volume` that files can be copied to and from."""

    name: Annotated[str, text(63, "Its name.")] = ""
    host_path: Annotated[VolumePath | None, Meta(description="A directory of the node.")] = None
    nfs: Annotated[VolumeServer | None, Meta(description="A directory of an NFS server.")] = None
    persistent_volume_claim: Annotated[
        ClaimSource | None, Meta(description="A volume of the namespace.")
    ] = None


class SylabsResults(ObjectStruct, frozen=True):
    """Files to copy when the job has succeeded."""

    mount: Annotated[Mount, Meta(description="The volume to copy to.")]
    source: Annotated[str, text(4096, "A file of the job; by default its standard output.")] = (
        msgspec.field(default="", name="from")
    )


class SylabsInputs(ObjectStruct, frozen=True):
    """Files to copy before the job starts."""

    mount: Annotated[Mount, Meta(description="The volume to copy from.")]
    to: Annotated[str, text(4096, "A directory on the cluster.")]


class SshAccess(ObjectStruct, frozen=True):
    """The user who submitted the job on a login node. The secrets are never read, not even here."""

    user: Annotated[str, text(256, "The user there.", min_length=1)]


_BATCH = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_SCRIPT,
        description="The batch script. Its #SBATCH lines are read as sbatch reads them.",
    ),
]
_SELECTOR = Annotated[
    Labels, Meta(max_length=MOST_LABELS, description="Labels that a node was required to have.")
]
_RESULTS = Annotated[
    SylabsResults | None, Meta(description="Files to copy when the job has succeeded.")
]


class Batch(ObjectStruct, frozen=True):
    """The fields that all kinds with a script have."""

    batch: _BATCH
    node_selector: _SELECTOR = msgspec.field(default_factory=dict)
    results: _RESULTS = None


class SlurmSpec(Batch, frozen=True):
    """`slurm.sylabs.io/v1alpha1 SlurmJob`."""

    resources: Annotated[
        dict[str, int],
        Meta(
            max_length=MOST_RESOURCES,
            description="Extended resources that a node was required to have.",
        ),
    ] = msgspec.field(default_factory=dict)
    ssh: Annotated[
        SshAccess | None, Meta(description="The user who submitted it on a login node.")
    ] = None
    pod_security_context: Annotated[
        JsonDict, Meta(description="Security context of the pod that followed the job.")
    ] = msgspec.field(default_factory=dict)
    time_limit: Annotated[
        int | None, Meta(description="Used only in an example; it never had an effect.")
    ] = None


class WlmSpec(Batch, frozen=True):
    """`wlm.sylabs.io/v1alpha1 SlurmJob`, with DP Technology's `prepare`."""

    prepare: Annotated[
        SylabsInputs | None, Meta(description="Files to copy before the job starts.")
    ] = None


class ContainerOptions(ObjectStruct, frozen=True):
    """Options of `singularity run`."""

    app: Annotated[str, text(256, "The application in the image.", pattern=_LINE)] = ""
    host_name: Annotated[str, text(256, "The container's host name.", pattern=_LINE)] = ""
    binds: Annotated[
        tuple[Annotated[str, text(4096, "source[:target[:options]].", pattern=_LINE)], ...],
        Meta(max_length=MOST_BINDS, description="Directories to bind."),
    ] = ()
    allow_unsigned: Annotated[bool, Meta(description="Accept unsigned images.")] = False
    clean_env: Annotated[bool, Meta(description="Start with an empty environment.")] = False
    fake_root: Annotated[bool, Meta(description="Appear to be root in the container.")] = False
    ipc: Annotated[bool, Meta(description="Use a separate IPC namespace.")] = False
    pid: Annotated[bool, Meta(description="Use a separate PID namespace.")] = False
    no_privs: Annotated[bool, Meta(description="Drop all privileges.")] = False
    writable: Annotated[bool, Meta(description="Make the image writable.")] = False


_AMOUNT = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class ContainerResources(ObjectStruct, frozen=True):
    """The resources of a job that names an image; 0 requests nothing."""

    nodes: Annotated[_AMOUNT, Meta(description="Nodes.")] = 0
    cpu_per_node: Annotated[_AMOUNT, Meta(description="CPUs of each node.")] = 0
    mem_per_node: Annotated[_AMOUNT, Meta(description="Memory of each node, in MiB.")] = 0
    wall_time: Annotated[_AMOUNT, Meta(description="The time limit, in seconds.")] = 0


class ContainerSpec(ObjectStruct, frozen=True):
    """`wlm.sylabs.io/v1alpha1 WlmJob`."""

    image: Annotated[
        str,
        text(
            4096,
            "The image: a file on the cluster, or a URI such as library://… or docker://….",
            min_length=1,
            pattern=r"^[^-\x00-\x20\x7f][^\x00-\x1f\x7f]*$",
        ),
    ]
    options: Annotated[ContainerOptions, Meta(description="Options of `singularity run`.")] = (
        ContainerOptions()
    )
    resources: Annotated[
        ContainerResources, Meta(description="The requested resources; 0 requests nothing.")
    ] = ContainerResources()
    node_selector: _SELECTOR = msgspec.field(default_factory=dict)
    results: _RESULTS = None


class SylabsStatus(SlurmJobStatus, frozen=True):
    """The state of the job: the status of our SlurmJobs, plus Sylabs' one-word status."""

    status: Annotated[str, text(64, "Pending, Running, Succeeded or Failed.")] = ""
