"""The chart of a Slurm cluster, with our values and with those of SchedMD's chart."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from deploy import manifests
from sandbox.client import Sandbox
from slurmoperator.objects import labels
from slurmoperator.objects.kinds import KINDS
from tests.chart import rendering
from tests.chart.policed import make_namespaces
from tests.chart.rendering import HelmError, Manifest

NAMESPACE = "slurm-chart"
RESTAPI_APP = "slurmrestd"
"""Of the pods that slurm-operator makes for a RestApi: tests/slurmoperator/rendering compares it with SchedMD's."""
CHART = manifests.DEPLOY / "slurm/chart"
TYPES = {each.kind: each.object_type for each in KINDS}


def image(daemon: str) -> dict[str, Any]:
    return {"repository": f"registry.test/{daemon}", "tag": "26.05", "digest": None}


POD: Mapping[str, Any] = {
    "metadata": {"annotations": {"a": "b"}},
    "podSpec": {
        "resources": {},
        "initContainers": [],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": {},
        "tolerations": [],
    },
}
SERVED = {**POD, "service": {"metadata": {}, "spec": {"type": "ClusterIP"}}}
THEIRS: Mapping[str, Any] = {
    "nameOverride": None,
    "fullnameOverride": None,
    "namespaceOverride": None,
    "asciiArt": True,
    "imagePullSecrets": [{"name": "pull"}],
    "imagePullPolicy": "Always",
    "priorityClass": {
        "enabled": True,
        "create": True,
        "name": "slurm-critical",
        "description": "for Slurm",
        "value": 1000000000,
        "preemptionPolicy": "PreemptLowerPriority",
    },
    "slurmKey": {"create": True, "annotations": {}, "secretRef": {}},
    "jwtKey": {"create": False, "annotations": {}, "secretRef": {"name": "jwt", "key": "hs256"}},
    "jwksKeys": {"enabled": False, "configMapRef": {}},
    "clusterName": "site",
    "configFiles": {"cgroup.conf": "CgroupPlugin=disabled\n"},
    "prologScripts": {"10-mount.sh": "#!/bin/sh\n# {{ not a template }}\nexit 0\n"},
    "prologScriptRefs": [{"name": "more-prologs"}],
    "epilogScripts": {},
    "epilogScriptRefs": [],
    "prologSlurmctldScripts": {},
    "prologSlurmctldScriptRefs": [],
    "epilogSlurmctldScripts": {"tell.sh": "#!/bin/sh\n"},
    "epilogSlurmctldScriptRefs": [],
    "controller": {
        "external": False,
        "externalConfig": {"host": "slurmctld.example.com", "port": None},
        "slurmctld": {"image": image("slurmctld"), "args": [], "resources": {}},
        "inplaceReconfigure": False,
        "reconfigure": {"image": image("slurmctld"), "resources": {}},
        "logfile": {"image": image("alpine"), "resources": {}},
        "ha": {"enabled": False, "backups": 1},
        "persistence": {
            "enabled": True,
            "existingClaim": "",
            "storageClassName": None,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "4Gi"}},
        },
        "extraConf": None,
        "extraConfMap": {"MinJobAge": 60, "SchedulerParameters": ["bf_interval=5", "defer"]},
        **SERVED,
        "metrics": {
            "enabled": False,
            "serviceMonitor": {
                "enabled": False,
                "annotations": {},
                "labels": {},
                "interval": "30s",
                "scrapeTimeout": "25s",
                "endpoints": [{"path": "/metrics/jobs"}],
            },
        },
    },
    "restapi": {
        "replicas": 2,
        "pdb": {"enabled": True, "minAvailable": 1, "maxUnavailable": None},
        "slurmrestd": {"image": image("slurmrestd"), "env": [], "args": [], "resources": {}},
        **SERVED,
    },
    "accounting": {
        "enabled": True,
        "external": False,
        "externalConfig": {"host": "slurmdbd.example.com", "port": None},
        "slurmdbd": {"image": image("slurmdbd"), "args": [], "resources": {}},
        "storageConfig": {
            "host": "mariadb",
            "port": 3306,
            "database": "slurm_acct_db",
            "username": "slurm",
            "passwordKeyRef": {"name": "mariadb-password", "key": "password"},
        },
        "extraConf": None,
        "extraConfMap": {},
        **SERVED,
    },
    "sssd": {"secretRef": {}, "conf": "[sssd]\nservices = nss, pam\n"},
    "loginsetDefaults": {
        "enabled": True,
        "replicas": 1,
        "strategy": {},
        "login": {
            "image": image("login"),
            "env": [],
            "securityContext": {"privileged": False},
            "resources": {},
            "volumeMounts": [],
        },
        "initconf": {"image": image("alpine"), "resources": {}},
        "rootSshAuthorizedKeys": None,
        "extraSshdConfig": None,
        **SERVED,
    },
    "loginsets": {"people": {"rootSshAuthorizedKeys": "ssh-ed25519 AAAA\n"}, "off": {"enabled": False}},
    "nodesetDefaults": {
        "enabled": True,
        "scalingMode": "StatefulSet",
        "replicas": 1,
        "pinToNode": False,
        "workloadDisruptionProtection": True,
        "pruneSlurmNodeRecords": "Never",
        "ordinalPadding": 0,
        "oversubscribeNode": False,
        "slurmd": {"image": image("slurmd"), "args": [], "env": [], "resources": {}, "volumeMounts": []},
        "logfile": {"image": image("alpine"), "resources": {}},
        "extraConf": None,
        "extraConfMap": {},
        "partition": {"enabled": False, "config": None, "configMap": {}},
        "ssh": {"enabled": False, "extraSshdConfig": None},
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%"},
            "scheduledUpdate": {},
        },
        **POD,
    },
    "nodesets": {
        "cpu": {"replicas": 3},
        "gpu": {
            "extraConfMap": {"Features": ["a100"], "Weight": 5},
            "ssh": {"enabled": True},
            "slurmd": {"image": {"tag": "26.05-gpu"}},
        },
    },
    "partitions": {
        "all": {"enabled": True, "nodesets": ["ALL"], "config": None, "configMap": {"Default": "YES"}},
        "both": {"enabled": True, "nodesets": ["gpu", "cpu"], "config": "MaxTime=60"},
    },
    "vendor": {"nvidia": {"dcgm": {"enabled": False}}, "google": {"a3mega": [], "a3ultra": []}},
    "extraObjects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-more"}}
    ],
}  # fmt: skip
"""Every key of SchedMD's chart, as of 1.3.0-rc1."""


def template(helm: Path, values: Mapping[str, Any], release: str = "slurm") -> str:
    return rendering.template(helm, CHART, values, release=release, namespace=NAMESPACE)


def objects(
    helm: Path, values: Mapping[str, Any], release: str = "slurm"
) -> dict[tuple[str, str], Manifest]:
    """By kind and name."""
    made = yaml.safe_load_all(template(helm, values, release))
    return {(each["kind"], each["metadata"]["name"]): each for each in made if each}


@pytest.fixture
def theirs(helm: Path) -> dict[tuple[str, str], Manifest]:
    return objects(helm, THEIRS)


def test_our_values_have_their_names() -> None:
    assert THEIRS.keys() == yaml.safe_load((CHART / "values.yaml").read_text()).keys()


def test_a_values_file_of_theirs_makes_objects_of_their_names(
    theirs: Mapping[tuple[str, str], Manifest],
) -> None:
    assert {
        ("Controller", "slurm"),
        ("RestApi", "slurm"),
        ("Accounting", "slurm"),
        ("NodeSet", "slurm-worker-cpu"),
        ("NodeSet", "slurm-worker-gpu"),
        ("LoginSet", "slurm-login-people"),
        ("ConfigMap", "slurm-config-extra"),
        ("ConfigMap", "slurm-prolog-scripts"),
        ("ConfigMap", "slurm-epilog-slurmctld-scripts"),
        ("ConfigMap", "slurm-more"),
        ("Secret", "slurm-sssd-conf"),
        ("PodDisruptionBudget", "slurm-restapi"),
        ("PriorityClass", "slurm-critical"),
    } == theirs.keys()
    for (kind, _), each in theirs.items():
        if kind in TYPES:
            msgspec.convert(each, TYPES[kind], strict=False)


def test_what_they_say_arrives(theirs: Mapping[tuple[str, str], Manifest]) -> None:
    controller = theirs["Controller", "slurm"]["spec"]
    assert [
        "MinJobAge=60",
        "SchedulerParameters=bf_interval=5,defer",
        "PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED",
        "PartitionName=both Nodes=cpu,gpu MaxTime=60",
    ] == controller["extraConf"].splitlines()
    assert {"name": "jwt", "key": "hs256"} == controller["jwtKeyRef"]
    assert {"name": "slurm-auth-slurm", "key": "slurm.key"} == controller["slurmKeyRef"]
    assert [{"name": "slurm-prolog-scripts"}, {"name": "more-prologs"}] == controller[
        "prologScriptRefs"
    ]
    assert "registry.test/slurmctld:26.05" == controller["slurmctld"]["image"]
    assert "storageClassName" not in controller["persistence"]
    scripts = theirs["ConfigMap", "slurm-prolog-scripts"]["data"]
    assert {"prolog-10-mount.sh": THEIRS["prologScripts"]["10-mount.sh"]} == scripts

    budget = theirs["PodDisruptionBudget", "slurm-restapi"]["spec"]
    assert labels.selecting(RESTAPI_APP, "slurm") == budget["selector"]["matchLabels"]

    gpu = theirs["NodeSet", "slurm-worker-gpu"]["spec"]
    assert "registry.test/slurmd:26.05-gpu" == gpu["slurmd"]["image"]
    assert "Features=a100 Weight=5" == gpu["extraConf"]
    assert {"name": "slurm-sssd-conf", "key": "sssd.conf"} == gpu["ssh"]["sssdConfRef"]
    pod = gpu["template"]["spec"]
    assert ("gpu-", "slurm-critical", [{"name": "pull"}]) == (
        pod["hostname"],
        pod["priorityClassName"],
        pod["imagePullSecrets"],
    )
    assert 3 == theirs["NodeSet", "slurm-worker-cpu"]["spec"]["replicas"]


def test_keys_are_no_part_of_it_and_each_rendering_is_the_same(helm: Path) -> None:
    """Their chart makes new keys at each rendering without a cluster; here slurm-operator makes them, once."""
    assert template(helm, THEIRS) == template(helm, THEIRS)
    assert {"slurm-sssd-conf"} == {name for kind, name in objects(helm, THEIRS) if kind == "Secret"}


def test_a_few_words_are_a_cluster(helm: Path) -> None:
    values = {"nodesets": {"slinky": {}}, "partitions": {"all": {"enabled": True}}}
    made = objects(helm, values, release="site")
    assert {
        ("Controller", "site-slurm"),
        ("RestApi", "site-slurm"),
        ("NodeSet", "site-slurm-worker-slinky"),
        ("Secret", "site-slurm-sssd-conf"),
    } == made.keys()
    spec = made["NodeSet", "site-slurm-worker-slinky"]["spec"]
    assert "image" not in spec["slurmd"], "the operator's is taken"
    assert "Default=YES MaxTime=UNLIMITED" in made["Controller", "site-slurm"]["spec"]["extraConf"]


def test_a_controller_and_its_accounting_have_the_same_keys(helm: Path) -> None:
    made = objects(helm, {"accounting": {"enabled": True}, "jwksKeys": {"enabled": True}})
    controller, accounting = (made[kind, "slurm"]["spec"] for kind in ("Controller", "Accounting"))
    for each in ("slurmKeyRef", "jwtKeyRef", "jwksKeyRef"):
        assert controller[each] == accounting[each]


def test_what_runs_elsewhere_is_named(helm: Path) -> None:
    elsewhere = {"external": True, "externalConfig": {"host": "a.example.com", "port": 7000}}
    made = objects(helm, {"controller": elsewhere, "accounting": {"enabled": True, **elsewhere}})
    for kind in ("Controller", "Accounting"):
        assert elsewhere.items() <= made[kind, "slurm"]["spec"].items()
    assert "template" not in made["Controller", "slurm"]["spec"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"nodeset": {}}, "nodeset"),
        ({"controller": {"slurmctl": {}}}, "/controller"),
        ({"nodesets": {"a": {"replica": 2}}}, "/nodesets/a"),
        ({"loginsetDefaults": {"sshd": {}}}, "/loginsetDefaults"),
        ({"controller": {"slurmctld": {"image": {"name": "x"}}}}, "/controller/slurmctld/image"),
        ({"controller": {"slurmctld": {"image": {"repository": "x"}}}}, "x: expected a tag"),
        ({"clusterName": "x" * 41}, "/clusterName"),
        ({"partitions": {"p": {"enabled": True}}}, r"partitions\.p\.nodesets: expected names"),
        (
            {"partitions": {"p": {"enabled": True, "nodesets": ["b"]}}, "nodesets": {"a": {}}},
            "no enabled nodeset b; there are ALL, a",
        ),
        ({"vendor": {"nvidia": {"dcgm": {"enabled": True}}}}, r"vendor\.nvidia\.dcgm"),
        ({"vendor": {"google": {"a3mega": ["a"]}}}, r"vendor\.google\.a3mega"),
    ],
)
def test_what_is_wrong_is_refused_with_its_path(
    helm: Path, values: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(HelmError, match=said):
        template(helm, values)


@pytest.fixture(scope="module")
def defined(control_plane: Sandbox) -> Iterator[None]:
    """The six kinds are served."""
    folder = f"--filename={manifests.CLUSTER_KINDS}"
    control_plane.kubectl("apply", "--server-side", folder)
    control_plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", folder)
    yield
    control_plane.kubectl("delete", "--timeout=60s", folder)


@pytest.mark.usefixtures("defined")
@pytest.mark.parametrize(
    "values", [THEIRS, {"nodesets": {"a": {}}}, {"accounting": {"enabled": True}}]
)
def test_a_real_api_server_takes_every_object(
    control_plane: Sandbox, helm: Path, values: Mapping[str, Any]
) -> None:
    make_namespaces(control_plane, {NAMESPACE: {}})
    said = control_plane.kubectl(
        "apply", "--server-side", "--dry-run=server", "-f", "-", stdin=template(helm, values)
    )
    assert len(objects(helm, values)) == len(said.splitlines())


def test_scripts_of_one_name_for_workers_and_slurmctld_are_different_files(helm: Path) -> None:
    lists = ("prologScripts", "epilogScripts", "prologSlurmctldScripts", "epilogSlurmctldScripts")
    made = objects(helm, {each: {"00-empty.sh": "#!/bin/sh\n"} for each in lists})
    files = [
        file for (kind, _), each in made.items() if kind == "ConfigMap" for file in each["data"]
    ]

    assert sorted(files) == [
        "epilog-00-empty.sh",
        "epilog-slurmctld-00-empty.sh",
        "prolog-00-empty.sh",
        "prolog-slurmctld-00-empty.sh",
    ]


def test_whatever_the_definition_has_of_services_and_claims_is_a_value(helm: Path) -> None:
    claim = {
        "enabled": True,
        "dataSource": {"kind": "VolumeSnapshot", "name": "a"},
        "dataSourceRef": {"kind": "VolumeSnapshot", "name": "a"},
        "volumeAttributesClassName": "fast",
        "volumeMode": "Filesystem",
        "volumeName": "pv-1",
    }
    ports = {"port": 6817, "nodePort": 30817}
    values = {
        "controller": {"persistence": claim, "service": ports},
        "restapi": {"service": {"port": 6820}},
    }
    made = objects(helm, values)

    spec = made["Controller", "slurm"]["spec"]
    assert claim.items() <= spec["persistence"].items()
    assert ports.items() <= spec["service"].items()
    assert made["RestApi", "slurm"]["spec"]["service"]["port"] == 6820


def test_null_and_zero_are_values(helm: Path) -> None:
    values = {
        "nodesets": {"a": {"partition": None, "ssh": None}},
        "restapi": {"pdb": {"enabled": True, "maxUnavailable": 0}},
    }
    made = objects(helm, values)

    assert made["NodeSet", "slurm-worker-a"]["spec"]["partition"] == {"enabled": False}
    budget = made["PodDisruptionBudget", "slurm-restapi"]["spec"]
    assert (0, False) == (budget["maxUnavailable"], "minAvailable" in budget)
    template(helm, {"restapi": {"pdb": None}})
