"""A worker's pod: what slurmd is told, what a user may change, and what is refused."""

import re
import shlex
from typing import Any

import msgspec
import pytest

from slurmoperator.nodesets.revisions import storing
from slurmoperator.objects.own.profiles import PROFILE_ANNOTATION
from slurmoperator.objects.workers import OnNode
from slurmoperator.rendering.node_sets.worker import return_to_node, worker_pod
from slurmruntime.values.faults import Refusal
from tests.slurmoperator.rendering.given import SITE, given, named

CONTROLLER = given("Controller")
_PLAIN = dict.fromkeys(
    ("extraConf", "ssh", "slurmd", "logfile", "template", "volumeClaimTemplates"), ...
)


def node_set(**spec: Any) -> Any:
    return given("NodeSet", "gpu", **{**_PLAIN, **spec})


def made(number: int = 3, **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = worker_pod(node_set(**spec), number, CONTROLLER, SITE)["spec"]
    return body


def refused_for(of: Any, number: int = 0, controller: Any = CONTROLLER) -> list[str]:
    """The fields for which a worker is refused."""
    with pytest.raises(Refusal) as refused:
        worker_pod(of, number, controller, SITE)
    return [fault.path for fault in refused.value.faults]


def slurmd(**spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = made(**spec)["containers"][0]
    return found


def test_slurmd_registers_itself_under_the_pods_host_name() -> None:
    spec = made(7, ordinalPadding=3)

    assert ("gpu-007", "slurm-workers-site") == (spec["hostname"], spec["subdomain"])
    assert "node7" == made(7, template={"spec": {"hostname": "node"}})["hostname"]
    assert ["slurm-workers-site.slurm.svc.cluster.local"] == spec["dnsConfig"]["searches"]
    assert [
        "-Z",
        "--conf-server",
        "site-controller-0.site-controller-internal.slurm:6817",
        "--conf",
        "'Features=gpu'",
    ] == slurmd()["args"]


def test_what_it_says_of_its_node_is_one_argument() -> None:
    args = slurmd(extraConf="Gres=gpu:4 Feature=fast,big Weight=10")["args"]

    said = shlex.split(args[-1])
    assert ["Features=gpu,fast,big Gres=gpu:4 Weight=10"] == said


def with_profile(profile: str, **spec: Any) -> dict[str, Any]:
    """The pod of a worker of a NodeSet with this profile."""
    found = node_set(**spec)
    metadata = msgspec.structs.replace(found.metadata, annotations={PROFILE_ANNOTATION: profile})
    return worker_pod(msgspec.structs.replace(found, metadata=metadata), 3, CONTROLLER, SITE)


def test_a_plain_worker_has_no_privileges_and_drops_what_it_does_not_need() -> None:
    found = with_profile("plain")
    context = found["spec"]["containers"][0]["securityContext"]
    assert (False, False, ["ALL"]) == (
        context["privileged"],
        context["allowPrivilegeEscalation"],
        context["capabilities"]["drop"],
    )
    # https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
    assert {*context["capabilities"]["add"]} <= {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
    assert made() == with_profile("privileged")["spec"]


def test_a_profile_that_there_is_not_or_that_has_no_ssh_is_refused() -> None:
    ssh = {"enabled": True, "sssdConfRef": {"name": "a", "key": "b"}}
    with pytest.raises(Refusal, match="expected privileged or plain, found Plain"):
        with_profile("Plain")
    with pytest.raises(Refusal, match=re.escape("spec.ssh.enabled: leave it out")):
        with_profile("plain", ssh=ssh)


def test_another_profile_is_another_template() -> None:
    plain = node_set()
    assert storing.content(plain) == storing.content(node_set())
    metadata = msgspec.structs.replace(plain.metadata, annotations={PROFILE_ANNOTATION: "plain"})
    marked = msgspec.structs.replace(plain, metadata=metadata)
    assert storing.content(plain) != storing.content(marked)


def test_two_workers_share_no_node_unless_somebody_wants_it() -> None:
    assert "podAntiAffinity" in made()["affinity"]
    assert "affinity" not in made(oversubscribeNode=True)


def test_the_worker_of_a_node_goes_to_that_node_only_and_stays_on_it() -> None:
    mine = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}
    template = {"spec": {"affinity": {"nodeAffinity": mine}, "nodeSelector": {"gpu": "yes"}}}
    of = node_set(scalingMode="DaemonSet", template=template)
    found = worker_pod(of, OnNode(kube_node="a.example", host="a"), CONTROLLER, SITE)

    spec = found["spec"]
    affinity = spec["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [{"key": "metadata.name", "operator": "In", "values": ["a.example"]}] == term[
        "matchFields"
    ]
    assert mine.items() <= affinity.items()
    assert "podAntiAffinity" in spec["affinity"]
    assert ("a", {"gpu": "yes"}) == (spec["hostname"], spec["nodeSelector"])
    tolerated = {toleration["key"] for toleration in spec["tolerations"]}
    assert "node.kubernetes.io/unreachable" in tolerated
    assert "node.kubernetes.io/unschedulable" not in tolerated


def test_a_worker_that_returns_to_its_node_keeps_what_its_user_requires() -> None:
    rack = {"matchExpressions": [{"key": "rack", "operator": "Exists"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [rack]}}
    template = {"spec": {"affinity": {"nodeAffinity": required}}}
    only = [{"key": "metadata.name", "operator": "In", "values": ["a"]}]

    mine = return_to_node({"spec": made(template=template)}, "a")["spec"]["affinity"]
    plain = return_to_node({"spec": made(oversubscribeNode=True)}, "a")["spec"]["affinity"]

    of_nodes = mine["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert {"nodeSelectorTerms": [{**rack, "matchFields": only}]} == of_nodes
    assert "podAntiAffinity" in mine
    (term,) = plain["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert {"matchFields": only} == term


def test_its_part_of_the_pod_is_laid_over_ours() -> None:
    container = slurmd(
        slurmd={
            "name": "other",
            "image": "mine",
            "resources": {"limits": {"cpu": "4", "memory": "8Gi"}},
            "securityContext": {"privileged": False},
        }
    )
    spec = made(
        template={"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"gpu": "yes"}}}
    )

    assert ("slurmd", "mine", False) == (
        container["name"],
        container["image"],
        container["securityContext"]["privileged"],
    )
    assert {"gpu": "yes"} == spec["nodeSelector"]
    assert not spec["automountServiceAccountToken"]


def test_what_would_make_it_another_node_is_refused_at_once() -> None:
    wrong = {"restartPolicy": "Never", "subdomain": "x", "hostname": "x" * 62}
    paths = refused_for(node_set(template={"spec": wrong}), 10)

    assert [f"spec.template.spec.{key}" for key in ("hostname", *tuple(wrong)[:2])] == paths


def on_host_network(**spec: Any) -> dict[str, Any]:
    """The template of workers with the network of their machines."""
    return {"spec": {"hostNetwork": True, **spec}}


def test_with_the_network_of_its_machine_it_keeps_its_own_name() -> None:
    """Such a pod has the machine's host name."""
    spec = made(7, template=on_host_network())
    container = spec["containers"][0]

    assert (True, "gpu-7") == (spec["hostNetwork"], spec["hostname"])
    assert ["-Z", "-N", "gpu-7", "--conf-server"] == container["args"][:4]
    assert "node=gpu-7\n" in container["lifecycle"]["preStop"]["exec"]["command"][-1]
    assert "-N" not in slurmd()["args"]
    assert "node=$(hostname)\n" in slurmd()["lifecycle"]["preStop"]["exec"]["command"][-1]
    of = node_set(scalingMode="DaemonSet", template=on_host_network())
    found = worker_pod(of, OnNode(kube_node="a.example", host="a"), CONTROLLER, SITE)
    assert ["-Z", "-N", "a"] == found["spec"]["containers"][0]["args"][:3]


def test_with_the_network_of_its_machine_it_finds_names_of_the_cluster() -> None:
    assert "ClusterFirstWithHostNet" == made(template=on_host_network())["dnsPolicy"]
    assert "dnsPolicy" not in made()
    assert "None" == made(template=on_host_network(dnsPolicy="None"))["dnsPolicy"]
    wrong = node_set(template=on_host_network(dnsPolicy="ClusterFirst"))
    assert ["spec.template.spec.dnsPolicy"] == refused_for(wrong)


def test_no_two_workers_have_one_port_of_a_machine() -> None:
    (port,) = made(template=on_host_network())["containers"][0]["ports"]
    assert (6818, 6818) == (port["containerPort"], port["hostPort"])
    assert "hostPort" not in named(slurmd()["ports"], "slurmd")
    paths = refused_for(
        node_set(
            template=on_host_network(),
            oversubscribeNode=True,
            ssh={"enabled": True, "sssdConfRef": {"name": "a", "key": "b"}},
        )
    )
    assert ["spec.oversubscribeNode", "spec.ssh.enabled"] == paths


def test_a_plain_worker_has_not_the_network_of_its_machine() -> None:
    with pytest.raises(Refusal) as refused:
        with_profile("plain", template=on_host_network())
    assert ["spec.template.spec.hostNetwork"] == [fault.path for fault in refused.value.faults]


def test_without_its_controller_there_is_no_worker() -> None:
    keyless = given(
        "Controller", external=True, slurmKeyRef=..., externalConfig={"host": "a", "port": 1}
    )
    for controller in (None, keyless):
        assert ["spec.controllerRef.name"] == refused_for(node_set(), controller=controller)


def test_workers_of_a_slurmctld_elsewhere_ask_it_by_its_address() -> None:
    external = given(
        "Controller", external=True, externalConfig={"host": "head.example", "port": 7000}
    )
    found = worker_pod(node_set(), 0, external, SITE)

    assert "head.example:7000" in found["spec"]["containers"][0]["args"]


def test_labels_by_which_it_is_found_are_ours() -> None:
    template = {"metadata": {"labels": {"slinky.slurm.net/cluster": "other", "a": "b"}}}
    found = worker_pod(node_set(template=template), 0, CONTROLLER, SITE)

    labels = found["metadata"]["labels"]
    assert ("site", "b", "slurmd") == (
        labels["slinky.slurm.net/cluster"],
        labels["a"],
        labels["app.kubernetes.io/name"],
    )


def test_users_log_in_where_their_jobs_run_if_the_node_set_says_so() -> None:
    sssd = {"name": "site-sssd", "key": "sssd.conf"}
    spec = made(ssh={"enabled": True, "sssdConfRef": sssd})
    mounted = [volume_mount["mountPath"] for volume_mount in spec["containers"][0]["volumeMounts"]]

    assert {"/etc/ssh/sshd_config", "/etc/sssd/sssd.conf"} <= set(mounted)
    assert 22 == named(spec["containers"][0]["ports"], "ssh")["containerPort"]
    source = named(spec["volumes"], "sssd-conf")["projected"]["sources"][0]["secret"]
    assert "site-sssd" == source["name"]
