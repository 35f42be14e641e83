"""Gather for `doctor` what only a kubelet knows of itself: its configuration, through the API server."""

from asyncio import gather
from collections.abc import Mapping, Sequence

import msgspec

from bridge.domain.ids import KubeNode
from bridge.kube import paths
from bridge.kube.client import KubeClient
from bridge.kube.errors import KubeError

_MOST = 50
"""Kubelets to ask: each that is dead costs a time-out, all at once."""


class _KubeletConfig(msgspec.Struct, rename="camel"):
    """`kubelet.config.k8s.io/v1beta1 KubeletConfiguration`."""

    cpu_manager_policy: str = "none"


class _Configz(msgspec.Struct):
    """The answer of `/configz`."""

    kubeletconfig: _KubeletConfig


async def cpu_managers(
    client: KubeClient, kube_nodes: Sequence[KubeNode]
) -> Mapping[KubeNode, str]:
    """Return the CPU manager policy of each kubelet that may be asked and answers."""
    asked = kube_nodes[:_MOST]
    answers = await gather(*(_cpu_manager(client, name) for name in asked))
    return {name: found for name, found in zip(asked, answers, strict=True) if found}


async def _cpu_manager(client: KubeClient, name: KubeNode) -> str:
    try:
        path = f"{paths.collection('v1', 'nodes')}{paths.of(name)}/proxy/configz"
        body = await client.request("GET", path)
        return msgspec.json.decode(body, type=_Configz).kubeletconfig.cpu_manager_policy
    except (KubeError, msgspec.MsgspecError):
        return ""
