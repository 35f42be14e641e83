"""SlurmCluster: a whole cluster in a few lines; slurm-operator creates objects of the other six kinds from it."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from slurmoperator.objects import parts
from slurmoperator.objects.accounting import DatabaseAccess
from slurmoperator.objects.parts import (
    ConditionsOnly,
    Duration,
    ExternalAddress,
    KeyOfObject,
    PodTemplatePart,
    Replicas,
    note,
)
from slurmruntime.crd.conditions import Number
from slurmruntime.crd.fields import ObjectStruct, rule, text
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.crd.schema import FREE, INT_OR_STRING
from slurmruntime.model.objects import JsonDict

GROUP: Final = "slurm-bridge.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "SlurmCluster"
PLURAL: Final = "slurmclusters"

_BY_NAME: Final[JsonDict] = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
_LINE: Final = r'^[^\n\r"\\#]*$'

NodesName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=40,
        pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$",
        description="Prefix of the Slurm node names: cpu gives cpu-0, cpu-1 and so on.",
    ),
]
PartitionName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        pattern="^[A-Za-z][-A-Za-z0-9_]*$",
        description="Name of a partition in Slurm.",
    ),
]
ConfValue = Annotated[
    int | str, Meta(extra_json_schema={INT_OR_STRING: True, "maxLength": 1024, "pattern": _LINE})
]
"""A value of slurm.conf, on one line."""


class ClusterNodes(ObjectStruct, frozen=True):
    """A set of identical workers."""

    name: NodesName
    replicas: Annotated[Replicas, note("Number of workers.")] = 1
    partitions: Annotated[
        tuple[PartitionName, ...],
        Meta(max_length=16, description="Partitions of these nodes; by default all."),
    ] = ()
    gres: Annotated[
        str,
        text(
            1024,
            "Devices of each node, in Slurm's GRES notation, such as gpu:a100:4.",
            pattern=r"^\S*$",
        ),
    ] = ""
    features: Annotated[
        tuple[Annotated[str, Meta(max_length=64, pattern="^[A-Za-z0-9_.]+$")], ...],
        Meta(
            max_length=32,
            description="Slurm features that jobs can request, in addition to the name.",
        ),
    ] = ()
    resources: Annotated[
        JsonDict | None,
        Meta(
            description="Resource requests and limits of the slurmd container.",
            extra_json_schema={FREE: True},
        ),
    ] = None
    template: Annotated[PodTemplatePart | None, note("Overrides for the pods.")] = None


class ClusterPartition(ObjectStruct, frozen=True):
    """A partition of all nodes that name it, or that name no partition."""

    name: PartitionName
    default: Annotated[
        bool,
        note(
            "Whether jobs that name no partition go here; by default the first partition is used."
        ),
    ] = False
    max_time: Annotated[
        str, text(32, "Time limit of jobs, such as 1-00:00:00.", pattern="^([0-9:-]+|UNLIMITED)$")
    ] = "UNLIMITED"
    config: Annotated[
        dict[str, ConfValue],
        Meta(max_length=32, description="Other options of the partition, such as MaxNodes: 4."),
    ] = msgspec.field(default_factory=dict)


class ClusterLogin(ObjectStruct, frozen=True):
    """Pods that users log in to."""

    replicas: Annotated[Replicas, note("Number of pods.")] = 1
    sssd_conf_ref: Annotated[
        KeyOfObject | None,
        note("Secret with sssd.conf; by default, password login is not possible."),
    ] = None


class ClusterAccounting(ObjectStruct, frozen=True):
    """Accounting: where jobs are recorded."""

    external: Annotated[ExternalAddress | None, note("Address of an existing slurmdbd.")] = None
    storage: Annotated[
        DatabaseAccess | None, note("Database for a slurmdbd that slurm-operator creates.")
    ] = None


class ClusterRestApi(ObjectStruct, frozen=True):
    """slurmrestd, which slurm-operator needs to drain workers."""

    enabled: Annotated[bool, note("Whether to run slurmrestd.")] = True
    replicas: Annotated[Replicas, note("Number of pods.")] = 1
    tls: Annotated[bool, note("Whether to serve HTTPS instead of plain HTTP.")] = True
    tls_secret: Annotated[
        str,
        text(
            253,
            "Secret with tls.crt, tls.key and ca.crt for slurmrestd; by default slurm-operator signs a certificate.",
            pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
        ),
    ] = ""


class ClusterToken(ObjectStruct, frozen=True):
    """A token, stored in a Secret."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=63,
            pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            description="Suffix of the Token's name, after the cluster's name.",
        ),
    ]
    username: Annotated[
        str,
        text(
            256,
            "Slurm user of the token; defaults to name.",
            pattern=r"^([A-Za-z0-9_][-A-Za-z0-9_.@]*)?$",
        ),
    ] = ""
    lifetime: Annotated[Duration | None, note("How long the token is valid, such as 1h.")] = None


class ClusterState(ObjectStruct, frozen=True):
    """Where slurmctld keeps its state."""

    persistent: Annotated[bool, note("If false, all jobs are lost with the pod.")] = True
    size: Annotated[
        str, text(32, "Size of the volume.", pattern=r"^[1-9][0-9]*(k|M|G|T|Ki|Mi|Gi|Ti)?$")
    ] = "4Gi"
    storage_class_name: Annotated[
        str, text(253, "Storage class of the volume; by default the cluster's default class.")
    ] = ""


class SlurmClusterSpec(ObjectStruct, frozen=True):
    """A Slurm cluster."""

    image: Annotated[
        str,
        text(
            512,
            "Image name with the placeholder {daemon}; defaults to slurm-operator's images.",
            pattern=r"^(\S*\{daemon\}\S*)?$",
        ),
    ] = ""
    version: Annotated[
        str, text(64, "Replaces {version} in image.", pattern="^[-A-Za-z0-9_.]*$")
    ] = ""
    config: Annotated[
        dict[str, ConfValue],
        Meta(max_length=256, description="Parameters of slurm.conf, such as MinJobAge: 600."),
    ] = msgspec.field(default_factory=dict)
    config_files: Annotated[
        dict[str, Annotated[str, Meta(max_length=parts.LONGEST_CONF)]],
        Meta(max_length=16, description="Other configuration files, such as cgroup.conf."),
    ] = msgspec.field(default_factory=dict)
    nodes: Annotated[
        tuple[ClusterNodes, ...],
        Meta(max_length=64, description="Sets of workers.", extra_json_schema=_BY_NAME),
    ] = ()
    partitions: Annotated[
        tuple[ClusterPartition, ...],
        Meta(
            max_length=32,
            description="By default one partition named all, with all workers.",
            extra_json_schema=_BY_NAME,
        ),
    ] = ()
    login: Annotated[ClusterLogin | None, note("Login pods; by default none.")] = None
    accounting: Annotated[
        ClusterAccounting | None, note("Where jobs are recorded; by default they are not.")
    ] = None
    worker_profile: Annotated[
        Literal["privileged", "plain"],
        note("Privileges of workers: plain workers need no privileged pods, but have no cgroups."),
    ] = "privileged"
    rest_api: Annotated[ClusterRestApi | None, note("slurmrestd; by default one is run.")] = None
    tokens: Annotated[
        tuple[ClusterToken, ...],
        Meta(
            max_length=64,
            description="Tokens to create, each in a Secret.",
            extra_json_schema=_BY_NAME,
        ),
    ] = ()
    state: Annotated[
        ClusterState | None,
        note("State of slurmctld; by default on a volume of the default storage class."),
    ] = None
    suspend: Annotated[
        bool,
        note(
            "If true, remove workers once their jobs have ended, and login pods at once; queued jobs stay."
        ),
    ] = False


_LINES_OF_THEIR_OWN = (
    "['downnodes', 'frontendname', 'include', 'nodename', 'nodeset', 'partitionname', 'switchname']"
)
_KEPT = "(!has({0}.state) || !has({0}.state.persistent) || {0}.state.persistent)"

SLURM_CLUSTER_RULES: Final = (
    rule(
        "has(self.version) == (has(self.image) && self.image.contains('{version}'))",
        "expected version if and only if image contains {version}",
        path=".version",
    ),
    rule(
        "!has(self.config) || self.config.all(key, key.matches('^[A-Za-z][A-Za-z0-9_]*$')"
        f" && !(key.lowerAscii() in {_LINES_OF_THEIR_OWN}))",
        "expected parameters of slurm.conf; nodes and partitions have their own fields",
        path=".config",
    ),
    rule(
        "!has(self.configFiles) || self.configFiles.all(key, key.size() <= 64"
        " && key.matches('^[a-z][a-z0-9_.-]*[.]conf$') && key != 'slurm.conf')",
        "expected file names such as cgroup.conf; slurm.conf is generated from config and partitions",
        path=".configFiles",
    ),
    rule(
        "!has(self.nodes) || self.nodes.all(node, node.name != 'all')",
        "expected another name: all is reserved for all nodes in Slurm",
        path=".nodes",
    ),
    rule(
        "!has(self.nodes) || self.nodes.all(node, !has(node.partitions) || node.partitions.all(name,"
        " has(self.partitions) ? self.partitions.exists(partition, partition.name == name) : name == 'all'))",
        "expected partitions that are listed in spec.partitions",
        path=".nodes",
    ),
    rule(
        "!has(self.partitions) || self.partitions.all(partition, partition.name.lowerAscii() != 'default')",
        "expected another name: DEFAULT is reserved in Slurm",
        path=".partitions",
    ),
    rule(
        "!has(self.partitions)"
        " || self.partitions.filter(partition, has(partition.default) && partition.default).size() <= 1",
        "expected at most one default partition",
        path=".partitions",
    ),
    rule(
        "!has(self.partitions) || self.partitions.all(partition, !has(partition.config)"
        " || partition.config.all(key, key.matches('^[A-Za-z][A-Za-z0-9_]*$')"
        " && !(key.lowerAscii() in ['partitionname', 'nodes', 'default', 'maxtime'])))",
        "expected partition parameters that have no field of their own",
        path=".partitions",
    ),
    rule(
        "!has(self.restApi) || !has(self.restApi.tlsSecret) || self.restApi.tlsSecret == ''"
        " || !has(self.restApi.tls) || self.restApi.tls",
        "leave it out, or set tls to true",
        path=".restApi.tlsSecret",
    ),
    rule(
        "!has(self.accounting) || has(self.accounting.external) != has(self.accounting.storage)",
        "expected either external or storage",
        path=".accounting",
    ),
    rule(
        f"{_KEPT.format('self')} == {_KEPT.format('oldSelf')}",
        "cannot be changed: slurmctld would start without its state and lose all running jobs",
        path=".state.persistent",
    ),
)

_NAME = "self.metadata.name"
LONGEST_CLUSTER: Final = 41
LONGEST_WITH_NODES: Final = 55
NAME_RULES: Final = (
    rule(
        f"{_NAME}.size() <= {LONGEST_CLUSTER} && {_NAME}.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        f"expected a name of at most {LONGEST_CLUSTER} lowercase letters, digits and hyphens, starting with a letter:"
        " Services and pods are named after it",
    ),
    rule(
        f"!has(self.spec.nodes) || self.spec.nodes.all(node, {_NAME}.size() + node.name.size() <= {LONGEST_WITH_NODES})",
        f"expected shorter node names: together with the cluster's name, they may have at most {LONGEST_WITH_NODES} characters",
    ),
)


class SlurmClusterStatus(ConditionsOnly, frozen=True):
    """Status of the cluster; only slurm-operator writes it."""

    observed_generation: Number = 0
    workers: Annotated[Number, note("Desired number of workers.")] = 0
    ready_workers: Number = 0
    idle: Annotated[Number, note("Slurm nodes without jobs.")] = 0
    allocated: Annotated[Number, note("Slurm nodes with jobs.")] = 0


class SlurmClusterObject(ObjectStruct, frozen=True):
    """A whole Slurm cluster; slurm-operator creates a Controller, NodeSets and so on from it."""

    metadata: ObjectMetadata
    spec: SlurmClusterSpec
    status: SlurmClusterStatus = SlurmClusterStatus()
