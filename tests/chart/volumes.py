"""One volume of each kind that a pod can have."""

from typing import Any

VOLUMES: dict[str, Any] = {
    "configMap": {"name": "one"},
    "csi": {"driver": "example.test"},
    "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]},
    "emptyDir": {},
    "ephemeral": {
        "volumeClaimTemplate": {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            }
        }
    },
    "fc": {"targetWWNs": ["500a0982991b8dc5"], "lun": 0},
    "hostPath": {"path": "/data"},
    "image": {"reference": "example.test/image"},
    "iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.test.example:one", "lun": 0},
    "nfs": {"server": "10.0.0.1", "path": "/data"},
    "persistentVolumeClaim": {"claimName": "data"},
    "projected": {"sources": [{"configMap": {"name": "one"}}]},
    "rbd": {"monitors": ["10.0.0.1"], "image": "one"},
    "secret": {"secretName": "one"},
}
