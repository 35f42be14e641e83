"""Objects of the six kinds as charts write them, with empty and null parts, for tests."""

from typing import Any

from slurmoperator.objects.kinds import KINDS, ClusterKind
from slurmoperator.objects.parts import API_VERSION

Manifest = dict[str, Any]
BY_NAME = {each.kind: each for each in KINDS}

SLURM_KEY = {"name": "site-auth-slurm", "key": "slurm.key"}
JWT_KEY = {"name": "site-auth-jwt", "key": "jwt.key"}
SSSD = {"name": "site-sssd", "key": "sssd.conf"}
_POD: Manifest = {
    "metadata": {"labels": {"app.kubernetes.io/part-of": "slurm"}},
    "spec": {
        "affinity": {},
        "imagePullSecrets": None,
        "initContainers": [],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "priorityClassName": "",
        "resources": {},
        "tolerations": [],
    },
}


def container(program: str) -> Manifest:
    return {
        "args": [],
        "image": f"registry.example.org/{program}:26.05",
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
    }


SPECS: dict[str, Manifest] = {
    "Controller": {
        "accountingRef": {"name": "site"},
        "clusterName": "site",
        "slurmKeyRef": SLURM_KEY,
        "jwtKeyRef": JWT_KEY,
        "extraConf": "SchedulerParameters=bf_interval=5\nPartitionName=all Nodes=ALL Default=YES",
        "configFileRefs": None,
        "prologScriptRefs": [{"name": "site-prologs"}],
        "epilogScriptRefs": None,
        "slurmctld": container("slurmctld"),
        "inplaceReconfigure": False,
        "reconfigure": container("slurmctld"),
        "logfile": container("alpine"),
        "template": _POD,
        "ha": {"enabled": False, "backups": 1},
        "persistence": {
            "enabled": True,
            "existingClaim": "",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "4Gi"}},
        },
        "service": {"metadata": {}, "spec": {}},
        "metrics": {
            "enabled": True,
            "serviceMonitor": {
                "enabled": False,
                "annotations": {},
                "labels": {},
                "interval": "30s",
                "endpoints": [{"path": "/metrics/jobs"}, {"path": "/metrics/nodes"}],
            },
        },
    },
    "NodeSet": {
        "controllerRef": {"name": "site"},
        "extraConf": "Gres=gpu:a100:4 Weight=10",
        "partition": {"enabled": True, "config": "MaxTime=UNLIMITED State=UP"},
        "ssh": {"enabled": True, "extraSshdConfig": "", "sssdConfRef": SSSD},
        "scalingMode": "StatefulSet",
        "replicas": 2,
        "slurmd": {**container("slurmd"), "volumeMounts": []},
        "logfile": container("alpine"),
        "template": {**_POD, "spec": {**_POD["spec"], "hostname": "gpu-", "volumes": []}},
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%"},
            "scheduledUpdate": {},
        },
        "volumeClaimTemplates": None,
        "ordinalPadding": 0,
        "pinToNode": False,
        "workloadDisruptionProtection": True,
        "pruneSlurmNodeRecords": "Never",
        "oversubscribeNode": False,
    },
    "LoginSet": {
        "controllerRef": {"name": "site"},
        "sssdConfRef": SSSD,
        "replicas": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "login": {**container("login"), "securityContext": {"privileged": False}},
        "initconf": container("alpine"),
        "template": _POD,
        "service": {"metadata": {}, "spec": {"type": "LoadBalancer"}},
    },
    "RestApi": {
        "controllerRef": {"name": "site"},
        "replicas": 1,
        "slurmrestd": container("slurmrestd"),
        "template": _POD,
        "service": {"metadata": {}, "spec": {}},
    },
    "Accounting": {
        "slurmKeyRef": SLURM_KEY,
        "jwtKeyRef": JWT_KEY,
        "slurmdbd": container("slurmdbd"),
        "template": _POD,
        "storageConfig": {
            "host": "mariadb",
            "port": 3306,
            "database": "slurm_acct_db",
            "username": "slurm",
            "passwordKeyRef": {"name": "mariadb-password", "key": "password"},
        },
        "extraConf": "ArchiveEvents=yes",
        "service": {"metadata": {}, "spec": {}},
    },
    "Token": {
        "username": "alice",
        "jwtKeyRef": JWT_KEY,
        "lifetime": "1h30m",
        "refresh": True,
        "secretRef": {"name": "alice-token", "key": "token"},
    },
}


def manifest(kind: str, name: str = "site", /, **changes: Any) -> Manifest:
    """An object as a chart writes it; a change to `...` takes the field away."""
    spec = {key: value for key, value in {**SPECS[kind], **changes}.items() if value is not ...}
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": "slurm"},
        "spec": spec,
    }


def path(kind: ClusterKind, namespace: str, name: str = "") -> str:
    """Where the API server has it."""
    found = f"/apis/{API_VERSION}/namespaces/{namespace}/{kind.plural}"
    return f"{found}/{name}" if name else found
