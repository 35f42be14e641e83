"""The names of Services on real nodes: what CoreDNS is told, and when it may be asked for."""

from pathlib import Path

from typer.testing import CliRunner

from sandbox.assembly import needed
from sandbox.assets import AssetName, coredns
from sandbox.cli import app
from sandbox.options import Options
from sandbox.realnodes import configuration, dns


def test_it_answers_for_the_cluster_and_knows_no_other_name() -> None:
    told = dns.corefile(address="10.128.0.1", port=1053, ready=1054, kubeconfig=Path("/k"))

    ours, others = told.split(".:1053 {")
    assert ours.startswith("cluster.local:1053 in-addr.arpa:1053 {")
    assert "kubeconfig /k" in ours
    assert "rcode NXDOMAIN" in others
    assert 2 == told.count("bind 10.128.0.1\n")  # never beyond the bridge


def test_pods_reach_it_where_their_kubelets_say() -> None:
    made = dict(dns.objects("10.128.0.1", 1053))
    service = made["/api/v1/namespaces/kube-system/services"]["spec"]

    assert isinstance(service, dict)
    assert [service["clusterIP"]] == configuration.kubelet()["clusterDNS"]
    assert {("UDP", 53), ("TCP", 53)} == {(p["protocol"], p["port"]) for p in service["ports"]}


def test_only_a_sandbox_that_asks_for_it_needs_its_program() -> None:
    assert AssetName.COREDNS not in needed(Options(real_nodes=2))
    assert AssetName.COREDNS in needed(Options(real_nodes=2, dns=True))


def test_without_real_nodes_it_is_refused() -> None:
    done = CliRunner().invoke(app, ["up", "--state", "/nowhere", "--dns"])

    assert 2 == done.exit_code
    assert "add --real-nodes 2" in done.output


def test_its_module_is_locked_and_names_no_registry() -> None:
    texts = {name: (coredns.MODULE / name).read_text() for name in ("go.mod", "go.sum")}

    assert not [name for name, text in texts.items() if "://" in text]
    assert f"{coredns.PROGRAM} {coredns.version()} h1:" in texts["go.sum"]
