"""What real kubelets say of their devices and CPU managers, and what the commands make of it."""

import asyncio
import json

from typer.testing import CliRunner

from sandbox.client import Sandbox
from slurmcli import plugin
from slurmcli.doctor import kube as examine_kube
from slurmruntime.kube.client import KubeClient
from slurmruntime.values.ids import KubeNode


def test_nodes_whose_kubelet_chooses_devices_give_counts_only(real: Sandbox) -> None:
    shown = CliRunner().invoke(plugin.app(), ["nodes", "-o", "json"], env=dict(real.env))

    rows = {row["kube_node"]: row for row in json.loads(shown.stdout)}
    said = [
        (rows[name]["devices"], rows[name]["cores"])
        for name in real.instance.options.real_node_names
    ]
    assert [("counts only", "counts only")] * 2 == said


def test_a_kubelet_tells_its_cpu_manager_and_one_that_is_not_there_tells_nothing(
    real: Sandbox,
) -> None:
    async def told(name: str) -> str:
        async with KubeClient.open(
            str(real.kubeconfig), request_timeout_s=10, user_agent="test"
        ) as client:
            return await examine_kube.cpu_manager(client, KubeNode(name))

    assert ["none", ""] == [asyncio.run(told(name)) for name in ("real-0", "plain-0")]
