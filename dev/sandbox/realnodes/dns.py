"""The names of Services for pods on real nodes: CoreDNS on the host, reached through kube-proxy as in a cluster.

It listens on the bridge's address and runs as an ordinary account: only the Service has port 53.
Other names do not exist, as pods cannot reach the outside.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from sandbox import identity, kubernetes, probes
from sandbox.api import Api, ApiError
from sandbox.assets import Asset
from sandbox.instance import Instance
from sandbox.kubernetes import GO
from sandbox.part import Part
from sandbox.realnodes import configuration
from sandbox.realnodes.network import Network

NAME = "coredns"
SERVICE = "kube-dns"
"""The usual name of a cluster's DNS Service, whatever its program."""
_USER = f"system:{NAME}"
_READY = f"{NAME}-ready"
_TTL_S = 5
_PORT = 53
_CONFLICT = 409


def prepare(instance: Instance, network: Network, now: datetime) -> None:
    """Write the server's configuration and credentials."""
    kubernetes.credentials(instance, user=_USER, groups=(), now=now, name=NAME)
    _corefile(instance).write_text(
        corefile(
            address=network.gateway,
            port=instance.ports[NAME],
            ready=instance.ports[_READY],
            kubeconfig=instance.kube / f"{NAME}.kubeconfig",
        )
    )


def corefile(*, address: str, port: int, ready: int, kubeconfig: Path) -> str:
    """Return CoreDNS' configuration: only the cluster's zones."""
    zones = f"{configuration.CLUSTER_DOMAIN}:{port} in-addr.arpa:{port}"
    return f"""{zones} {{
    bind {address}
    errors
    ready {address}:{ready}
    kubernetes {configuration.CLUSTER_DOMAIN} in-addr.arpa {{
        kubeconfig {kubeconfig}
        ttl {_TTL_S}
    }}
}}
.:{port} {{
    bind {address}
    errors
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def part(instance: Instance, asset: Asset, network: Network) -> Part:
    """Return CoreDNS."""
    return Part(
        name=NAME,
        argv=(str(asset.bin / "coredns"), "-conf", str(_corefile(instance))),
        env=GO,
        identity=identity.servers(),
        folder=instance.kube,
        port=instance.ports[NAME],
        answers=partial(
            probes.says_yes, f"http://{network.gateway}:{instance.ports[_READY]}/ready"
        ),
        needs=("controller-manager",),  # kube-system exists by then
        prepare=partial(_create_objects, instance, network),
        restarts=True,
    )


def _corefile(instance: Instance) -> Path:
    return instance.kube / "Corefile"


def _create_objects(instance: Instance, network: Network) -> None:
    with Api(instance.kubeconfig) as api:
        for path, body in objects(network.gateway, instance.ports[NAME]):
            try:
                api.create(path, body)
            except ApiError as error:
                if error.status != _CONFLICT:  # it was started before
                    raise


def objects(address: str, port: int) -> tuple[tuple[str, Mapping[str, object]], ...]:
    """Return the objects, with their collections, that give it read access and let pods find it."""
    group = "rbac.authorization.k8s.io"
    protocols = [(f"dns{suffix}", protocol) for suffix, protocol in (("", "UDP"), ("-tcp", "TCP"))]
    may_read = [
        {"apiGroups": [""], "resources": ["namespaces", "services"], "verbs": ["list", "watch"]},
        {
            "apiGroups": ["discovery.k8s.io"],
            "resources": ["endpointslices"],
            "verbs": ["list", "watch"],
        },
    ]
    return (
        (
            f"/apis/{group}/v1/clusterroles",
            {"metadata": {"name": _USER}, "rules": may_read},
        ),
        (
            f"/apis/{group}/v1/clusterrolebindings",
            {
                "metadata": {"name": _USER},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": _USER},
                "subjects": [{"apiGroup": group, "kind": "User", "name": _USER}],
            },
        ),
        (
            "/api/v1/namespaces/kube-system/services",
            {
                "metadata": {"name": SERVICE},
                "spec": {
                    "clusterIP": configuration.CLUSTER_DNS,
                    "ports": [
                        {"name": name, "port": _PORT, "protocol": protocol}
                        for name, protocol in protocols
                    ],
                },
            },
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices",
            {
                "metadata": {"name": SERVICE, "labels": {"kubernetes.io/service-name": SERVICE}},
                "addressType": "IPv4",
                "ports": [
                    {"name": name, "port": port, "protocol": protocol}
                    for name, protocol in protocols
                ],
                "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            },
        ),
    )
