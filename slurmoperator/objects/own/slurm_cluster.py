"""SlurmCluster: a whole cluster in a few lines, from which the objects of the six kinds are made."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from slurmoperator.objects import parts
from slurmoperator.objects.accounting import DatabaseAccess
from slurmoperator.objects.parts import (
    ConditionsOnly,
    ExternalAddress,
    KeyOfObject,
    PodTemplatePart,
    Replicas,
)
from slurmruntime.crd.conditions import Number
from slurmruntime.crd.fields import ObjectStruct, rule, text
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.crd.schema import FREE, INT_OR_STRING

GROUP: Final = "slurm-bridge.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "SlurmCluster"
PLURAL: Final = "slurmclusters"

_BY_NAME: Final[dict[str, Any]] = {
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
        description="Of the nodes in Slurm, which are numbered after it: cpu-0, cpu-1 and so on.",
    ),
]
PartitionName = Annotated[
    str,
    Meta(min_length=1, max_length=64, pattern="^[A-Za-z][-A-Za-z0-9_]*$", description="In Slurm."),
]
ConfValue = Annotated[
    int | str, Meta(extra_json_schema={INT_OR_STRING: True, "maxLength": 1024, "pattern": _LINE})
]
"""A value of slurm.conf, on one line."""


class ClusterNodes(ObjectStruct, frozen=True):
    """Workers that are alike."""

    name: NodesName
    replicas: Annotated[Replicas, Meta(description="How many there are.")] = 1
    partitions: Annotated[
        tuple[PartitionName, ...],
        Meta(max_length=16, description="In which partitions they are; by default in all."),
    ] = ()
    gres: Annotated[
        str,
        text(1024, "Their devices, as Slurm writes them, such as gpu:a100:4.", pattern=r"^\S*$"),
    ] = ""
    features: Annotated[
        tuple[Annotated[str, Meta(max_length=64, pattern="^[A-Za-z0-9_.]+$")], ...],
        Meta(max_length=32, description="What jobs may ask for, besides the name."),
    ] = ()
    resources: Annotated[
        dict[str, Any] | None,
        Meta(
            description="Of the container with slurmd: requests and limits.",
            extra_json_schema={FREE: True},
        ),
    ] = None
    template: Annotated[PodTemplatePart | None, Meta(description="Laid over the pods.")] = None


class ClusterPartition(ObjectStruct, frozen=True):
    """A partition of all nodes that name it, or that name none."""

    name: PartitionName
    default: Annotated[
        bool, Meta(description="Whether jobs go there that name none; else the first is.")
    ] = False
    max_time: Annotated[
        str,
        text(32, "How long a job may run, such as 1-00:00:00.", pattern="^([0-9:-]+|UNLIMITED)$"),
    ] = "UNLIMITED"
    config: Annotated[
        dict[str, ConfValue],
        Meta(max_length=32, description="What else stands on its line, such as MaxNodes: 4."),
    ] = msgspec.field(default_factory=dict)


class ClusterLogin(ObjectStruct, frozen=True):
    """Pods to which users log in."""

    replicas: Annotated[Replicas, Meta(description="How many there are.")] = 1
    sssd_conf_ref: Annotated[
        KeyOfObject | None,
        Meta(description="Secret with sssd.conf; by default nobody can log in by a password."),
    ] = None


class ClusterAccounting(ObjectStruct, frozen=True):
    """Where jobs are recorded."""

    external: Annotated[ExternalAddress | None, Meta(description="A slurmdbd elsewhere.")] = None
    storage: Annotated[
        DatabaseAccess | None, Meta(description="The database of a slurmdbd that is made.")
    ] = None


class ClusterRestApi(ObjectStruct, frozen=True):
    """slurmrestd, through which workers are drained."""

    enabled: Annotated[bool, Meta(description="Whether there is one.")] = True
    replicas: Annotated[Replicas, Meta(description="How many there are.")] = 1
    tls: Annotated[bool, Meta(description="Whether it speaks TLS; otherwise plain HTTP.")] = True
    tls_secret: Annotated[
        str,
        text(
            253,
            "Secret with tls.crt, tls.key and ca.crt that it presents; by default slurm-operator signs one.",
            pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
        ),
    ] = ""


class ClusterToken(ObjectStruct, frozen=True):
    """A token in a Secret."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=63,
            pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            description="Of the Token, after the cluster's.",
        ),
    ]
    username: Annotated[
        str,
        text(
            256, "Whose it is; by default the name.", pattern=r"^([A-Za-z0-9_][-A-Za-z0-9_.@]*)?$"
        ),
    ] = ""
    lifetime: Annotated[
        Annotated[str, Meta(max_length=64, pattern=parts.GO_DURATION)] | None,
        Meta(description="How long it is good for, such as 1h."),
    ] = None


class ClusterState(ObjectStruct, frozen=True):
    """Where slurmctld keeps its state."""

    persistent: Annotated[bool, Meta(description="If false, a lost pod loses all jobs.")] = True
    size: Annotated[
        str, text(32, "Of the volume.", pattern=r"^[1-9][0-9]*(k|M|G|T|Ki|Mi|Gi|Ti)?$")
    ] = "4Gi"
    storage_class_name: Annotated[
        str, text(253, "Of the volume; by default Kubernetes' own default.")
    ] = ""


class SlurmClusterSpec(ObjectStruct, frozen=True):
    """A Slurm cluster."""

    image: Annotated[
        str,
        text(
            512,
            "Image of each daemon, with {daemon} in it; by default slurm-operator's.",
            pattern=r"^(\S*\{daemon\}\S*)?$",
        ),
    ] = ""
    version: Annotated[
        str, text(64, "What stands for {version} in image.", pattern="^[-A-Za-z0-9_.]*$")
    ] = ""
    config: Annotated[
        dict[str, ConfValue],
        Meta(max_length=256, description="Parameters of slurm.conf, such as MinJobAge: 600."),
    ] = msgspec.field(default_factory=dict)
    config_files: Annotated[
        dict[str, Annotated[str, Meta(max_length=parts.LONGEST_CONF)]],
        Meta(max_length=16, description="Files beside slurm.conf, such as cgroup.conf."),
    ] = msgspec.field(default_factory=dict)
    nodes: Annotated[
        tuple[ClusterNodes, ...],
        Meta(max_length=64, description="Workers.", extra_json_schema=_BY_NAME),
    ] = ()
    partitions: Annotated[
        tuple[ClusterPartition, ...],
        Meta(
            max_length=32,
            description="By default one of all workers, called all.",
            extra_json_schema=_BY_NAME,
        ),
    ] = ()
    login: Annotated[ClusterLogin | None, Meta(description="By default there are none.")] = None
    accounting: Annotated[
        ClusterAccounting | None, Meta(description="By default jobs are not recorded.")
    ] = None
    worker_profile: Annotated[
        Literal["privileged", "plain"],
        Meta(
            description="With which rights workers run: plain ones have no control groups, and need no privileged pods."
        ),
    ] = "privileged"
    rest_api: Annotated[ClusterRestApi | None, Meta(description="By default there is one.")] = None
    tokens: Annotated[
        tuple[ClusterToken, ...],
        Meta(max_length=64, description="In Secrets.", extra_json_schema=_BY_NAME),
    ] = ()
    state: Annotated[
        ClusterState | None, Meta(description="By default a volume of the default class.")
    ] = None
    suspend: Annotated[
        bool,
        Meta(
            description="If true, workers go when their jobs have ended, and login pods at once; the queue stays."
        ),
    ] = False


_LINES_OF_THEIR_OWN = (
    "['downnodes', 'frontendname', 'include', 'nodename', 'nodeset', 'partitionname', 'switchname']"
)
_KEPT = "(!has({0}.state) || !has({0}.state.persistent) || {0}.state.persistent)"

SLURM_CLUSTER_RULES: Final = (
    rule(
        "has(self.version) == (has(self.image) && self.image.contains('{version}'))",
        "expected version together with {version} in image",
        path=".version",
    ),
    rule(
        "!has(self.config) || self.config.all(key, key.matches('^[A-Za-z][A-Za-z0-9_]*$')"
        f" && !(key.lowerAscii() in {_LINES_OF_THEIR_OWN}))",
        "expected parameters of slurm.conf; nodes and partitions have fields of their own",
        path=".config",
    ),
    rule(
        "!has(self.configFiles) || self.configFiles.all(key, key.size() <= 64"
        " && key.matches('^[a-z][a-z0-9_.-]*[.]conf$') && key != 'slurm.conf')",
        "expected names such as cgroup.conf; slurm.conf is made of config and partitions",
        path=".configFiles",
    ),
    rule(
        "!has(self.nodes) || self.nodes.all(each, each.name != 'all')",
        "all stands for all nodes in Slurm: expected another name",
        path=".nodes",
    ),
    rule(
        "!has(self.nodes) || self.nodes.all(each, !has(each.partitions) || each.partitions.all(name,"
        " has(self.partitions) ? self.partitions.exists(one, one.name == name) : name == 'all'))",
        "expected partitions that are listed in spec.partitions",
        path=".nodes",
    ),
    rule(
        "!has(self.partitions) || self.partitions.all(each, each.name.lowerAscii() != 'default')",
        "DEFAULT is no partition in Slurm: expected another name",
        path=".partitions",
    ),
    rule(
        "!has(self.partitions)"
        " || self.partitions.filter(each, has(each.default) && each.default).size() <= 1",
        "expected one default partition",
        path=".partitions",
    ),
    rule(
        "!has(self.partitions) || self.partitions.all(each, !has(each.config)"
        " || each.config.all(key, key.matches('^[A-Za-z][A-Za-z0-9_]*$')"
        " && !(key.lowerAscii() in ['partitionname', 'nodes', 'default', 'maxtime'])))",
        "expected parameters of a partition that have no field of their own",
        path=".partitions",
    ),
    rule(
        "!has(self.restApi) || !has(self.restApi.tlsSecret) || self.restApi.tlsSecret == ''"
        " || !has(self.restApi.tls) || self.restApi.tls",
        "leave it out, or set tls",
        path=".restApi.tlsSecret",
    ),
    rule(
        "!has(self.accounting) || has(self.accounting.external) != has(self.accounting.storage)",
        "expected either external or storage",
        path=".accounting",
    ),
    rule(
        f"{_KEPT.format('self')} == {_KEPT.format('oldSelf')}",
        "slurmctld would start without its state, and all running jobs would be lost",
        path=".state.persistent",
    ),
)

_NAME = "self.metadata.name"
LONGEST_CLUSTER: Final = 41
LONGEST_WITH_NODES: Final = 55
NAME_RULES: Final = (
    rule(
        f"{_NAME}.size() <= {LONGEST_CLUSTER} && {_NAME}.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        f"expected a name of at most {LONGEST_CLUSTER} small letters, digits and hyphens, a letter first: Services and"
        " pods are named after it",
    ),
    rule(
        f"!has(self.spec.nodes) || self.spec.nodes.all(each, {_NAME}.size() + each.name.size() <= {LONGEST_WITH_NODES})",
        f"expected shorter names of nodes: with the cluster's, they have at most {LONGEST_WITH_NODES} characters",
    ),
)


class SlurmClusterStatus(ConditionsOnly, frozen=True):
    """How the cluster stands; written by slurm-operator only."""

    observed_generation: Number = 0
    workers: Annotated[Number, Meta(description="That are wanted.")] = 0
    ready_workers: Number = 0
    idle: Annotated[Number, Meta(description="Nodes in Slurm without jobs.")] = 0
    allocated: Annotated[Number, Meta(description="Nodes in Slurm with jobs.")] = 0


class SlurmClusterObject(ObjectStruct, frozen=True):
    """A whole Slurm cluster, from which a Controller, NodeSets and so on are made."""

    metadata: ObjectMetadata
    spec: SlurmClusterSpec
    status: SlurmClusterStatus = SlurmClusterStatus()
