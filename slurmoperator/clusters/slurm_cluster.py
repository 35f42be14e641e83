"""SlurmClusters in the API server: how we watch and write them."""

from typing import Final, TypeAlias

from slurmoperator.objects.own.slurm_cluster import (
    API_VERSION,
    KIND,
    PLURAL,
    SlurmClusterObject,
    SlurmClusterStatus,
)
from slurmruntime.kube.apply.custom import CustomKind, CustomObject

WatchedCluster: TypeAlias = CustomObject[SlurmClusterObject, SlurmClusterStatus]

FINALIZER: Final = "slurm-bridge.dev/cluster"
"""Keeps a deleted SlurmCluster until its workers are gone."""
SLURM_CLUSTER: Final = CustomKind(
    api_version=API_VERSION,
    kind=KIND,
    plural=PLURAL,
    object_type=SlurmClusterObject,
    status_type=SlurmClusterStatus,
    finalizer=FINALIZER,
)
SLURM_CLUSTERS: Final = SLURM_CLUSTER.watched
