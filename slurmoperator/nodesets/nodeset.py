"""NodeSets in the API server: how they are watched and written."""

from typing import Final, TypeAlias

from slurmoperator.nodesets import names
from slurmoperator.objects.nodeset import NodeSetObject, NodeSetStatus
from slurmoperator.objects.parts import API_VERSION
from slurmruntime.kube.apply.custom import CustomKind, CustomObject

WatchedNodeSet: TypeAlias = CustomObject[NodeSetObject, NodeSetStatus]

NODE_SET: Final = CustomKind(
    api_version=API_VERSION,
    kind="NodeSet",
    plural="nodesets",
    object_type=NodeSetObject,
    status_type=NodeSetStatus,
    finalizer=names.WORKERS_FINALIZER,
)
NODE_SETS: Final = NODE_SET.watched
