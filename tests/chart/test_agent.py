"""The node agent: nowhere unless it is wanted, and then with no more than it needs."""

from bridge.domain.model.cores import agents
from tests.chart.conftest import Render
from tests.chart.objects import rights
from tests.chart.rendering import Rendered
from tests.chart.value_sets import VALUES

NAME = "slurm-bridge-agent"


def test_nothing_of_it_is_there_by_default(chart: Rendered) -> None:
    for kind in ("DaemonSet", "ClusterRole", "ServiceAccount"):
        assert NAME not in chart.of_kind(kind)


def test_it_may_read_pods_and_write_nothing(render: Render) -> None:
    chart = render(VALUES["agent"])

    assert {("", "pods", "list", ""), ("", "pods", "watch", "")} == rights(
        chart, "ClusterRole", NAME
    )
    roles = [
        binding["roleRef"]["name"]
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for binding in chart.of_kind(kind).values()
        if NAME in {subject["name"] for subject in binding["subjects"]}
    ]
    assert [NAME] == roles


def test_it_is_root_without_any_capability_and_sees_of_its_node_the_cgroups_only(
    render: Render,
) -> None:
    spec = render(VALUES["agent"]).of_kind("DaemonSet")[NAME]["spec"]["template"]["spec"]
    (container,) = spec["containers"]

    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    paths = [volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume]
    assert ["/sys/fs/cgroup"] == paths
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)


def test_its_pods_are_those_that_nodes_and_doctor_look_for(render: Render) -> None:
    template = render(VALUES["agent"]).of_kind("DaemonSet")[NAME]["spec"]["template"]

    wanted = dict(term.split("=") for term in agents.SELECTOR.split(","))
    assert wanted.items() <= template["metadata"]["labels"].items()


def test_a_network_policy_lets_only_listed_peers_scrape_it(render: Render) -> None:
    prometheus = [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
    network = {"networkPolicy": {"enabled": True, "metricsFrom": prometheus}}

    policy = render({**VALUES["agent"], **network}).of_kind("NetworkPolicy")[NAME]["spec"]

    assert ["Ingress"] == policy["policyTypes"]
    assert [{"ports": [{"port": "health"}], "from": prometheus}] == policy["ingress"]
    assert NAME not in render(network).of_kind("NetworkPolicy")
