"""Sets of values that between them switch everything in the chart on and off."""

from collections.abc import Mapping
from typing import Any

from slurmruntime.values import names
from tests.chart.policed import OUTSIDE

_ALL = {
    "networkPolicy": {"enabled": True},
    "priorityClass": {"create": True, "name": "slurm-bridge"},
    "imagePullSecrets": [{"name": "pull"}],
    "webhook": {
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"a": "b"},
        "affinity": {"nodeAffinity": {}},
        "podAnnotations": {"a": "b"},
    },
}
VALUES: Mapping[str, dict[str, Any]] = {
    "defaults": {},
    "everything": _ALL,
    "without-workloads": OUTSIDE,
    "own-certificates": {
        "tls": {
            "mode": "secret",
            "caBundle": "PEM",
            "secrets": {"webhook": "w", "extender": "e", "scheduler": "s"},
        }
    },
    "openshift": {"podSecurityContext": dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"))},
    "agent": {"config": {"agent": {"pin_cores": True}}},
    "slurm-jobs": {"config": {"slurm_jobs": {"enabled": True}}},
    "sylabs": {"config": {"slurm_jobs": {"enabled": True}, "sylabs": {"enabled": True}}},
    "together": {
        "workloads": {"together": True},
        "config": {"slurm_jobs": {"enabled": True}, "nodes": {"hybrid": "escrow"}},
        "escrow": {"hosts": ["escrow.example.test"]},
    },
    "slurm-in-pods": {
        "config": {"slurm": {"controller": "slurm/site"}},
        "slurmController": {"keySecret": "site-jwt", "restApis": ["site", "other"]},
    },
    "no-taint": {"config": {"controllers": {"taint_effect": ""}}},
    "direct-warned": {"policies": {"direct": {"actions": ["Warn", "Audit"], "namespaces": []}}},
    "taint-denied": {"policies": {"managedTaint": {"actions": ["Deny", "Audit"]}}},
    "other-label": {
        "namespaceSelector": {
            "matchLabels": {names.ENABLED_LABEL: None},
            "matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}],
        }
    },
    "all-but-some": {
        "namespaceSelector": {
            "matchLabels": {names.ENABLED_LABEL: None},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["system"]}],
        }
    },
    "by-digest": {
        "image": {"repository": "example.test/bridge", "digest": f"sha256:{'0' * 64}"},
        "imagePullSecrets": [{"name": "pull"}],
    },
    "one-of-each": {
        "webhook": {"replicas": 1},
        "extender": {"replicas": 1},
        "controllers": {"replicas": 1},
        "scheduler": {"replicas": 1, "leaderElect": False},
    },
    "monitored": {
        "monitoring": {
            "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
            "rules": {"enabled": True, "labels": {"release": "prometheus"}},
            "dashboard": {"enabled": True},
        }
    },
    "cert-manager": {"tls": {"mode": "certManager"}},
    "own-issuer": {
        "tls": {
            "mode": "certManager",
            "certManager": {"issuerRef": {"kind": "ClusterIssuer", "name": "corporate"}},
        }
    },
    "two-calls": {"admission": {"calls": "two"}},
    "policy-mutates": {"admission": {"mutate": "policy"}},
    "with-environment": {
        "controllers": {
            "extraEnv": [{"name": "SLURM_BRIDGE_LOG__LEVEL", "value": "debug"}],
            "extraArgs": ["--secrets-dir=/run/secrets/slurm-bridge"],
        }
    },
    "many-kinds": {
        "extender": {
            "workloadKinds": [{"apiGroup": "kubeflow.org", "resources": ["pytorchjobs", "mpijobs"]}]
        }
    },
}
