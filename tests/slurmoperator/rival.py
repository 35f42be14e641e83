"""SchedMD's operator, played for an API server: its webhook and its lease."""

import contextlib
from datetime import datetime, timedelta

from sandbox.api import Api, ApiError
from slurmoperator.rivals import LEASE
from slurmruntime.kube.meta import rfc3339


class Rival:
    """SchedMD's operator, as the cluster sees it."""

    def __init__(self, admin: Api, namespace: str) -> None:
        self._admin = admin
        self._lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        self._name = f"rival-{namespace}"

    def register(self) -> None:
        """Register a webhook that is asked about nothing in this API server."""
        rule = {
            "apiGroups": ["slinky.slurm.net"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["nothing"],
        }
        webhook = {
            "name": "rival.example.org",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [rule],
        }
        self._admin.create(
            self._webhooks,
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": self._name},
                "webhooks": [webhook],
            },
        )

    def leave(self) -> None:
        with contextlib.suppress(ApiError):
            self._admin.delete(f"{self._webhooks}/{self._name}")

    def hold(self, until: datetime) -> None:
        renewed = until - timedelta(seconds=15)
        self._admin.create(
            self._lease,
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": LEASE},
                "spec": {
                    "holderIdentity": "theirs",
                    "leaseDurationSeconds": 15,
                    "renewTime": rfc3339(renewed),
                },
            },
        )
