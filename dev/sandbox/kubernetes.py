"""The Kubernetes control plane: credentials, and etcd, API server, controller manager and scheduler as parts.

Set up as kubeadm does, as far as processes on one machine allow: RBAC, service accounts, a separate
certificate for every component, default admission plugins.
"""

import json
import ssl
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote

from sandbox import identity, kubeconfig, pki, probes
from sandbox.instance import Instance, make_folder, write_private
from sandbox.part import Part
from slurmruntime.model.objects import JsonObject

ISSUER = "https://kubernetes.default.svc"
_IN_CLUSTER = (
    *("kubernetes", "kubernetes.default", "kubernetes.default.svc"),
    *("kubernetes.default.svc.cluster.local", "10.0.0.1"),
)
"""The API server's names for pods."""
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}
HEALTH = "/healthz,/livez,/readyz,/metrics"
GO = {"GOGC": "200"}
"""For Go programs: cores are scarcer than memory here, and garbage collection was a fifth of the
API server's work.
"""


def prepare(instance: Instance, now: datetime, hosts: tuple[str, ...] = ()) -> None:
    """Create the cluster's keys, certificates and kubeconfigs.

    Args:
        instance: the sandbox.
        now: certificates are valid from then.
        hosts: further addresses of the API server.
    """
    owner = identity.servers()
    folder = make_folder(instance.kube, owner)
    make_folder(folder / "etcd", owner).chmod(0o700)
    ca = pki.authority(now)
    write_private(folder / "ca.key", ca.key)
    (folder / "ca.crt").write_bytes(ca.certificate)
    server = pki.issue(ca, name="kube-apiserver", hosts=(*_IN_CLUSTER, *hosts), now=now)
    write_private(folder / "server.crt", server.certificate, owner)
    write_private(folder / "server.key", server.key, owner)
    tokens = pki.signing_key()
    write_private(folder / "sa.pub", tokens.certificate, owner)
    write_private(folder / "sa.key", tokens.key, owner)
    for name, user, group in (
        ("controller-manager", "system:kube-controller-manager", ""),
        ("scheduler", "system:kube-scheduler", ""),
        ("kwok", "sandbox:kubelet", "system:masters"),
    ):
        credentials(instance, user=user, groups=(group,) * bool(group), now=now, name=name)
    # The administrator's kubeconfig stays with the caller: kubectl and the tests read it.
    client = pki.issue(ca, name="sandbox:admin", groups=("system:masters",), now=now)
    kubeconfig.with_certificate(
        instance.kubeconfig,
        server=instance.url("apiserver", "https"),
        ca=ca.certificate,
        client=client,
    )
    _write_scheduler_configuration(instance)
    write_private(folder / "audit.json", json.dumps(_AUDIT_POLICY), owner)


def authority(instance: Instance) -> pki.Pair:
    """Return the cluster's CA."""
    return pki.Pair(
        certificate=(instance.kube / "ca.crt").read_bytes(),
        key=(instance.kube / "ca.key").read_bytes(),
    )


def credentials(
    instance: Instance, *, user: str, groups: tuple[str, ...], now: datetime, name: str
) -> Path:
    """Write a kubeconfig with a client certificate for a component of the control plane."""
    ca = authority(instance)
    return kubeconfig.with_certificate(
        instance.kube / f"{name}.kubeconfig",
        server=instance.url("apiserver", "https"),
        ca=ca.certificate,
        client=pki.issue(ca, name=user, groups=groups, now=now),
        owner=identity.servers(),
    )


def user_kubeconfig(
    instance: Instance, *, user: str, groups: tuple[str, ...], now: datetime
) -> Path:
    """Write a kubeconfig for an ordinary user; it belongs to the caller."""
    ca = authority(instance)
    return kubeconfig.with_certificate(
        instance.kube / f"user-{quote(user, safe='')}.kubeconfig",
        server=instance.url("apiserver", "https"),
        ca=ca.certificate,
        client=pki.issue(ca, name=user, groups=groups, now=now),
    )


def parts(instance: Instance, programs: Path) -> tuple[Part, ...]:
    """Return the four parts, in starting order."""
    return (
        _etcd(instance, programs),
        _apiserver(instance, programs),
        _controller_manager(instance, programs),
        _scheduler(instance, programs),
    )


def _etcd(instance: Instance, programs: Path) -> Part:
    url, peer_url = instance.url("etcd"), instance.url("etcd-peer")
    return Part(
        name="etcd",
        env=GO,
        argv=(
            str(programs / "etcd"),
            "--name=sandbox",
            f"--data-dir={instance.kube / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=sandbox={peer_url}",
            "--unsafe-no-fsync=true",  # a sandbox need not survive a power cut
            "--quota-backend-bytes=8589934592",  # 0.7 MB/s at 20 pods/s, kept up to ten minutes: close to 2 GiB
            "--log-level=warn",
        ),
        identity=identity.servers(),
        folder=instance.kube,
        port=instance.ports["etcd"],
        data=(instance.kube / "etcd",),
        answers=partial(probes.says_yes, f"{url}/readyz"),
    )


def _apiserver(instance: Instance, programs: Path) -> Part:
    folder = instance.kube
    return Part(
        name="apiserver",
        env=GO,
        argv=(
            str(programs / "kube-apiserver"),
            f"--etcd-servers={instance.url('etcd')}",
            "--bind-address=127.0.0.1",
            f"--secure-port={instance.ports['apiserver']}",
            "--advertise-address=127.0.0.1",  # otherwise taken from the default route, which need not exist
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--tls-cert-file={folder / 'server.crt'}",
            f"--tls-private-key-file={folder / 'server.key'}",
            f"--client-ca-file={folder / 'ca.crt'}",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-key-file={folder / 'sa.pub'}",
            f"--service-account-signing-key-file={folder / 'sa.key'}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            *_gates(instance),
            *_audit(instance),
            *_to_kubelets(instance),
            *(
                ["--runtime-config=scheduling.k8s.io/v1alpha2=true"]
                if instance.options.feature_gates
                else []
            ),
        ),
        identity=identity.servers(),
        folder=folder,
        port=instance.ports["apiserver"],
        answers=partial(
            probes.says_yes, f"{instance.url('apiserver', 'https')}/readyz", context=trust(instance)
        ),
        needs=("etcd",),
        stop_timeout_s=15,
    )


def _controller_manager(instance: Instance, programs: Path) -> Part:
    folder = instance.kube
    return Part(
        name="controller-manager",
        env=GO,
        argv=(
            str(programs / "kube-controller-manager"),
            f"--kubeconfig={folder / 'controller-manager.kubeconfig'}",
            f"--root-ca-file={folder / 'ca.crt'}",
            f"--service-account-private-key-file={folder / 'sa.key'}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            *_gates(instance),
            *serving(instance, "controller-manager"),
        ),
        identity=identity.servers(),
        folder=folder,
        port=instance.ports["controller-manager"],
        answers=healthy(instance, "controller-manager"),
        needs=("apiserver",),
    )


def _scheduler(instance: Instance, programs: Path) -> Part:
    return Part(
        name="scheduler",
        env=GO,
        argv=(
            str(programs / "kube-scheduler"),
            f"--config={instance.kube / 'scheduler.json'}",
            *serving(instance, "scheduler"),
        ),
        identity=identity.servers(),
        folder=instance.kube,
        port=instance.ports["scheduler"],
        answers=healthy(instance, "scheduler"),
        needs=("apiserver",),
    )


def _audit(instance: Instance) -> list[str]:
    """Return the flags that log the requests of service accounts, metadata only.

    Kubernetes' own controllers are left out.
    """
    if not instance.options.audit:
        return []
    return [
        f"--audit-policy-file={instance.kube / 'audit.json'}",
        f"--audit-log-path={instance.audit_log}",
    ]


def _to_kubelets(instance: Instance) -> list[str]:
    """Return the flags by which the API server reaches real kubelets, for logs and exec."""
    if not instance.options.real_nodes:
        return []
    return [
        "--enable-aggregator-routing=true",  # webhooks in pods: no kube-proxy routes a Service's address on this host
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={instance.kube / 'server.crt'}",
        f"--kubelet-client-key={instance.kube / 'server.key'}",
    ]


def _gates(instance: Instance) -> list[str]:
    gates = ",".join(f"{gate}=true" for gate in instance.options.feature_gates)
    return [f"--feature-gates={gates}"] if gates else []


def _write_scheduler_configuration(instance: Instance) -> None:
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(instance.kube / "scheduler.kubeconfig"),
            "qps": 1000,
            "burst": 2000,
        },
    }
    (instance.kube / "scheduler.json").write_text(json.dumps(configuration, indent=2))


def takes_pods(node: JsonObject) -> bool:
    """Check whether it is Ready and the controller manager has removed a new node's taints."""
    conditions = node["status"].get("conditions", [])
    taints = [taint["key"] for taint in node["spec"].get("taints", [])]
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return ready and not any(key.startswith("node.kubernetes.io/") for key in taints)


def serving(instance: Instance, port: str) -> tuple[str, ...]:
    """Return the flags all Kubernetes components but the API server share."""
    return (
        "--bind-address=127.0.0.1",
        f"--secure-port={instance.ports[port]}",
        f"--tls-cert-file={instance.kube / 'server.crt'}",
        f"--tls-private-key-file={instance.kube / 'server.key'}",
        f"--authorization-always-allow-paths={HEALTH}",
        "--authentication-skip-lookup=true",
    )


def healthy(instance: Instance, port: str) -> partial[bool]:
    """Return the probe that goes with `serving`."""
    return partial(
        probes.says_yes, f"{instance.url(port, 'https')}/healthz", context=trust(instance)
    )


def trust(instance: Instance) -> ssl.SSLContext:
    """Return a context that trusts the cluster's CA and nothing else."""
    return ssl.create_default_context(cafile=str(instance.kube / "ca.crt"))
