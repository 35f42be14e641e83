"""What we make beside what SchedMD's operator makes of the same objects: names, labels, ports and mounts.

What it makes was read in its source (1.3.0-rc1). What only one of them has must be explained in `differences`.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from docs.generate.operator_differences import BODY_DIFFERENCES
from slurmoperator.rendering.node_sets.worker import worker_pod
from tests.slurmoperator.rendering.given import MADE_FOR, SITE, given, name_of, one, pod, rendered

EXPLAINED = " ".join(f"{each.where} {each.theirs} {each.ours}" for each in BODY_DIFFERENCES)

THEIR_OBJECTS = {
    "Controller": {
        ("ConfigMap", "site-config"),
        ("Service", "site-controller"),
        ("Service", "site-controller-internal"),
        ("StatefulSet", "site-controller"),
        ("Service", "slurm-workers-site"),  # they make it with the NodeSets
    },
    "Accounting": {
        ("Secret", "site-accounting"),
        ("Service", "site-accounting"),
        ("StatefulSet", "site-accounting"),
    },
    "RestApi": {("Service", "site-restapi"), ("Deployment", "site-restapi")},
    "LoginSet": {
        ("ConfigMap", "site-ssh-config"),
        ("Secret", "site-ssh-host-keys"),
        ("Service", "site"),
        ("Deployment", "site"),
    },
    "NodeSet": {("ConfigMap", "site-ssh-config")},
}
EXPLAINED_OBJECTS = {
    ("ConfigMap", "site-config-wanted"): "NAME-config-wanted",
    ("Secret", "site-accounting-wanted"): "NAME-accounting-wanted",
    ("PodDisruptionBudget", "site-workers"): "NODESET-workers",
    ("ConfigMap", "site-workers-ssh-config"): "NAME-workers-ssh-config",
    ("ConfigMap", "site-ssh-config"): "NAME-ssh-config",
    ("ConfigMap", "site-restapi-tls"): "NAME-restapi-tls",
    ("Secret", "site-restapi-tls"): "NAME-restapi-tls",
}
THEIR_LABELS = {
    "Controller": ("slurmctld", "controller"),
    "Accounting": ("slurmdbd", "accounting"),
    "RestApi": ("slurmrestd", "restapi"),
    "LoginSet": ("login", "login"),
    "NodeSet": ("slurmd", "worker"),
}
THEIR_PORTS = {
    "Controller": {"slurmctld": 6817},
    "Accounting": {"slurmdbd": 6819},
    "RestApi": {"slurmrestd": 6820},
    "LoginSet": {"login": 22},
    "NodeSet": {"slurmd": 6818, "ssh": 22},
}
THEIR_USERS = {
    "Controller": (401, 401, 401),
    "Accounting": (401, 401, 401),
    "RestApi": (65534, 65534, 65534),
    "LoginSet": (None, None, None),
    "NodeSet": (None, None, None),
}
_HOST_KEYS = tuple(
    f"/etc/ssh/ssh_host_{algorithm}_key{end}"
    for algorithm in ("rsa", "ed25519", "ecdsa")
    for end in ("", ".pub")
)
THEIR_MOUNTS = {
    "Controller": {
        "/etc/slurm": ("slurm-etc", None),
        "/etc/slurm-keys": ("slurm-keys", 0o610),  # explained with NAME-config-wanted
        "/run": ("run", None),
        "/var/spool/slurmctld/site": ("statesave", None),
        "/run/slurmctld": ("slurm-authsocket", None),
        "/var/log/slurm": ("slurm-logfile", None),
    },
    "Accounting": {
        "/etc/slurm": ("slurm-etc", None),
        "/etc/slurm-keys": ("slurm-keys", 0o600),  # explained with NAME-accounting-wanted
        "/run": ("run", None),
    },
    "RestApi": {"/etc/slurm": ("slurm-etc", 0o600)},
    "LoginSet": {
        "/etc/slurm": ("slurm-etc", None),
        "/run/slurm": ("sackd-dir", None),
        "/etc/ssh/sshd_config": ("ssh-config", 0o600),
        "/root/.ssh/authorized_keys": ("ssh-config", 0o600),
        "/etc/sssd/sssd.conf": ("sssd-conf", 0o600),
        **dict.fromkeys(_HOST_KEYS, ("ssh-host-keys", 0o600)),
    },
    "NodeSet": {
        "/etc/slurm": ("slurm-etc", 0o600),
        "/var/log/slurm": ("slurm-logfile", None),
        "/var/lib/slurm": ("slurm-started", None),  # only ours
        "/etc/ssh/sshd_config": ("ssh-config", 0o600),
        "/etc/sssd/sssd.conf": ("sssd-conf", 0o600),
    },
}
THEIR_FILES = {
    "Controller": {"slurm.key", "jwt.key"},
    "Accounting": {"slurm.key", "jwt.key"},
    "RestApi": {"slurm.conf", "slurm.key"},
    "NodeSet": {"slurm.key"},
}
THEIR_SIDECARS = {
    "Controller": {"logfile"},
    "LoginSet": {"initconf"},
    "NodeSet": {"logfile"},
}
EXPLAINED_SIDECARS = {
    "reconfigure": "container `reconfigure`",
    "slurmdbd": "init container `slurmdbd`",
    "configuration": "init container `configuration`",
    "tls": "side-car `tls`",
}


def template(kind: str) -> Any:
    if kind != "NodeSet":
        return pod(rendered(given(kind)))
    return worker_pod(given(kind), 0, given("Controller"), SITE)


def explained(difference: str) -> bool:
    return difference in EXPLAINED


@pytest.mark.parametrize("kind", MADE_FOR)
def test_objects_have_the_names_of_theirs(kind: str) -> None:
    ours = {(body["kind"], name_of(body)) for body in rendered(given(kind))}
    differing = ours ^ THEIR_OBJECTS[kind]

    assert all(explained(EXPLAINED_OBJECTS[each]) for each in differing)


@pytest.mark.parametrize("kind", MADE_FOR)
def test_pods_have_their_labels(kind: str) -> None:
    app, component = THEIR_LABELS[kind]
    theirs = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": "site",
        "app.kubernetes.io/component": component,
        **({"slinky.slurm.net/cluster": "site"} if kind == "NodeSet" else {}),
    }
    ours = template(kind)["metadata"]["labels"]

    assert theirs.items() <= ours.items()
    added = {key.rpartition("/")[2] for key in ours.keys() - theirs.keys()}
    assert added == {"part-of", "managed-by"}
    assert explained("labels `part-of` and `managed-by`")


@pytest.mark.parametrize("kind", MADE_FOR)
def test_pods_have_their_ports_users_and_mounts(kind: str) -> None:
    spec = template(kind)["spec"]
    container = spec["containers"][0]
    modes = {each["name"]: each.get("projected", {}).get("defaultMode") for each in spec["volumes"]}
    user = spec.get("securityContext", {})

    assert THEIR_PORTS[kind] == {port["name"]: port["containerPort"] for port in container["ports"]}
    assert THEIR_USERS[kind] == tuple(
        user.get(each) for each in ("runAsUser", "runAsGroup", "fsGroup")
    )
    assert THEIR_MOUNTS[kind] == {
        volume_mount["mountPath"]: (volume_mount["name"], modes.get(volume_mount["name"]))
        for volume_mount in container["volumeMounts"]
    }
    volume = "slurm-keys" if kind in ("Controller", "Accounting") else "slurm-etc"
    assert THEIR_FILES.get(kind, set()) == set(files(spec, volume))
    beside = {init_container["name"] for init_container in spec.get("initContainers", ())}
    assert all(
        explained(EXPLAINED_SIDECARS[each]) for each in beside ^ THEIR_SIDECARS.get(kind, set())
    )


def test_the_state_is_in_a_claim_of_their_name() -> None:
    runs = one(rendered(given("Controller")), "StatefulSet")["spec"]

    assert ["statesave"] == [
        volume_claim_template["metadata"]["name"]
        for volume_claim_template in runs["volumeClaimTemplates"]
    ]
    assert "site-controller-internal" == runs["serviceName"]


def files(spec: Any, volume: str) -> Iterator[str]:
    """Names of the files of a volume, those of whole ConfigMaps excepted."""
    for each in spec["volumes"]:
        for source in (
            each.get("projected", {}).get("sources", ()) if each["name"] == volume else ()
        ):
            for kind in source.values():
                yield from (item["path"] for item in kind.get("items", ()))
