"""Check the Kubernetes side: is everything in the chart installed, does it work, who leads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.domain.diagnosis import namespaces
from slurmruntime.model.objects import JsonObject
from slurmruntime.values import names
from slurmruntime.values.findings import Check, Result, fault, not_checked, ok, warning

_OLDEST = (1, 30)
"""The first release with ValidatingAdmissionPolicy v1."""

_OLDEST_WITH_CLAIMS = (1, 34)
"""The first release with `resource.k8s.io/v1`."""

_SKEW_S = 5.0

ALWAYS_BOUND = (
    "accounts-bindings",
    "accounts-deletes",
    "accounts-nodes",
    "accounts-pods",
    "binding",
    "bypass",
    "direct",
    "elsewhere-excluded",
    "keys",
    "keys-unlabelled",
    "namespaces",
    "nodes",
    "resize",
    "self-test",
)
"""Suffixes of the names of the chart's policy bindings; each binds the policy of the same name."""

PROGRAMS = ("extender", "controllers")

_UPGRADE = "helm upgrade slurm-bridge deploy/chart: it restores what is missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeFacts:
    """What the API server reported; None for what could not be read."""

    version: tuple[int, int]
    skew_s: float | None
    """Its clock minus ours."""
    release: str
    settings_faults: Sequence[str] | None
    """Faults of the settings file in its ConfigMap."""
    scheduler_name: str = names.SCHEDULER_NAME
    has_profiles: bool = False
    """Whether device profiles are set: pods may have resource claims."""
    unserved: Sequence[str] | None = None
    """Device profiles without a DeviceClass or a driver, in words; None if that was not read."""
    scheduler: JsonObject | None = None
    """kube-scheduler's configuration in its ConfigMap."""
    webhooks: frozenset[str] | None = None
    """The configurations that exist: `mutating`, `validating`."""
    admission: str | None = None
    """What happened to a dry-run CREATE of a pod in a selected namespace; "" if it became ours;
    None if not tried."""
    bindings: frozenset[str] | None = None
    """Suffixes of the names of the policy bindings that exist and whose policies exist."""
    selecting_terms: int = 1
    """The number of terms by which namespaces are selected; each has a binding of policy `elsewhere`."""
    has_taint: bool = True
    direct_denies: bool = True
    """Whether policy `direct` refuses; where it only warns, another binding is for our own accounts' updates."""
    serves_slurm_jobs: bool = False
    webhook_has_last_word: bool = True
    """Whether the validating webhook sees every new pod as it is stored; else policy `impossible` does."""
    lease_ages: Mapping[str, float | None] | None = None
    """Per program, the seconds since its leader renewed, beyond the lease's duration; None if
    there is no leader."""
    is_one_process: bool = False
    """One process leads all programs (`workloads.together`)."""
    denied: Sequence[str] | None = None
    """Rights that a service account needs but lacks: `controllers: delete pods`."""
    selected_namespaces: int | None = None
    without_effect: Sequence[str] = ()
    """Labelled namespaces that are excluded or slurm-bridge's own."""
    refused_daemon_sets: Sequence[str] | None = None
    """DaemonSets, as `namespace/name`, that tolerate the managed-node taint and whose new pods
    policy `direct` refuses."""
    key_holders: Mapping[str, Sequence[str]] | None = None
    """Who, besides administrators, can get the keys of Slurm clusters in pods, in words, by namespace."""


def _version(facts: KubeFacts) -> Result:
    version = f"Kubernetes {facts.version[0]}.{facts.version[1]}"
    if facts.version < _OLDEST:
        return fault(f"{version} has no admission policies", "upgrade to 1.30 or newer")
    if facts.has_profiles and facts.version < _OLDEST_WITH_CLAIMS:
        return fault(
            f"{version} has no resource claims (resource.k8s.io/v1), which device profiles need",
            "upgrade to 1.34 or newer, or remove config.controllers.device_profiles",
        )
    return ok(version)


def _clock(facts: KubeFacts) -> Result:
    if facts.skew_s is None:
        return not_checked("the API server did not report its time")
    if abs(facts.skew_s) > _SKEW_S:
        return fault(
            f"the API server's clock is {facts.skew_s:+.0f} s from this machine's",
            "synchronise both clocks with chrony or ntpd: leases and times depend on them",
        )
    return ok("the API server's clock agrees with this machine's")


def _settings(facts: KubeFacts) -> Result:
    if facts.settings_faults is None:
        return fault(
            f"there is no ConfigMap with settings in namespace {facts.release}",
            "helm install slurm-bridge deploy/chart, or set its namespace with --release-namespace",
        )
    if facts.settings_faults:
        return fault("; ".join(facts.settings_faults), "correct config in the chart's values")
    return ok("the settings are valid")


def _device_profiles(facts: KubeFacts) -> Result:
    if facts.settings_faults is None:
        return not_checked("the settings could not be read")
    if not facts.has_profiles:
        return ok("no device profile is set")
    if facts.unserved is None:
        return not_checked("DeviceClasses and ResourceSlices could not be read")
    if facts.unserved:
        return warning(
            "; ".join(facts.unserved),
            "install the driver and its DeviceClass, or correct config.controllers.device_profiles "
            "and device_resources",
        )
    return ok("each device profile has a DeviceClass and a driver")


def _profile(facts: KubeFacts) -> Result:
    if facts.scheduler is None:
        return not_checked("kube-scheduler's configuration is in no ConfigMap of ours")
    faults = [*_profile_faults(facts), *_extender_faults(facts.scheduler)]
    if faults:
        return fault("; ".join(faults), _UPGRADE)
    return ok(f"profile {facts.scheduler_name} asks the extender")


def _profile_faults(facts: KubeFacts) -> Sequence[str]:
    profiles = (facts.scheduler or {}).get("profiles") or []
    mine = [one for one in profiles if one.get("schedulerName") == facts.scheduler_name]
    if not mine:
        return [f"kube-scheduler has no profile {facts.scheduler_name}"]
    ours = names.binder(facts.scheduler_name)
    if any(one.get("schedulerName") == ours for one in profiles):
        return [f"kube-scheduler has a profile {ours}: only the extender binds pods of that name"]
    disabled = {
        plugin.get("name")
        for point in (mine[0].get("plugins") or {}).values()
        for plugin in (point or {}).get("disabled") or []
    }
    needed = {"SchedulingGates", "NodeAffinity", "NodeResourcesFit", "*"}
    return [
        f"the profile disables {name}: pods would be bound without asking Slurm"
        for name in sorted(disabled & needed)
    ]


def _extender_faults(scheduler: JsonObject) -> Sequence[str]:
    extenders = scheduler.get("extenders") or []
    asked = [one for one in extenders if one.get("filterVerb") and one.get("bindVerb")]
    if not asked:
        return ["no extender filters and binds"]
    return ["the extender is ignorable: pods would be bound without it"] * bool(
        asked[0].get("ignorable")
    )


def _webhooks(facts: KubeFacts) -> Result:
    if facts.webhooks is None:
        return not_checked("webhook configurations may not be read")
    absent = sorted({"mutating", "validating"} - facts.webhooks)
    if absent:
        return fault(
            f"slurm-bridge has no {' and no '.join(absent)} webhook configuration", _UPGRADE
        )
    return ok("the webhook configurations exist")


def _admission(facts: KubeFacts) -> Result:
    if facts.admission is None:
        return not_checked("there is no namespace to test it in, or no right to create pods there")
    if facts.admission:
        return fault(
            f"the dry run of a test pod failed: {facts.admission}",
            f"kubectl -n {facts.release} get pods,endpointslices: the webhook must run, and its "
            "certificate must be signed by the caBundle of its configuration (tls.mode)",
        )
    return ok("a test pod was created with our gate")


def expected_bindings(facts: KubeFacts) -> Sequence[str]:
    """Return the suffixes of the names of the policy bindings that the chart makes."""
    elsewhere = [f"elsewhere-{n}".removesuffix("-0") for n in range(facts.selecting_terms)]
    tainted = ["taint", "daemonsets"] if facts.has_taint else []
    claims = ["claims", "claims-by-resource"] if facts.has_taint and facts.has_profiles else []
    templates = ["templates"] if facts.has_profiles else []
    of_jobs = ["accounts-pods-companions", "companions", "companions-kept", "slurmjobs"]
    jobs = of_jobs if facts.serves_slurm_jobs else []
    updates = [] if facts.has_taint and facts.direct_denies else ["accounts-pods-elsewhere"]
    last = [] if facts.webhook_has_last_word else ["impossible"]
    return sorted(
        [*ALWAYS_BOUND, *updates, *elsewhere, *tainted, *claims, *templates, *jobs, *last]
    )


def _policies(facts: KubeFacts) -> Result:
    if facts.bindings is None:
        return not_checked("admission policies may not be read")
    absent = [name for name in expected_bindings(facts) if name not in facts.bindings]
    if absent:
        return fault(f"policies are missing or not bound: {', '.join(absent)}", _UPGRADE)
    return ok("the admission policies exist and are bound")


def _leaders(facts: KubeFacts) -> Result:
    if facts.lease_ages is None:
        return not_checked("leases may not be read")
    silent = [name for name in PROGRAMS if facts.lease_ages.get(name) is None]
    stale = {name: age for name, age in facts.lease_ages.items() if age is not None and age > 0}
    words = [f"the {name} has no leader" for name in silent]
    words += [
        f"the leader of the {name} has been silent for {age:.0f} s" for name, age in stale.items()
    ]
    if words:
        logs = f"kubectl -n {facts.release} get pods; kubectl -n {facts.release} logs deploy/slurm-bridge-{{}}"
        return fault("; ".join(words), logs.format([*silent, *stale][0]))
    if facts.is_one_process:
        return ok("one process leads extender and controllers")
    return ok("extender and controllers each have a leader")


def _rights(facts: KubeFacts) -> Result:
    if facts.denied is None:
        return not_checked("you may not check the rights of others (subjectaccessreviews)")
    if facts.denied:
        return fault(f"rights are missing: {', '.join(facts.denied)}", _UPGRADE)
    return ok("the service accounts have the rights they need")


def _namespaces(facts: KubeFacts) -> Result:
    if facts.selected_namespaces is None:
        return not_checked("namespaces may not be listed")
    if facts.without_effect:
        return warning(
            "; ".join(
                namespaces.no_effect(namespace, release=facts.release)
                for namespace in sorted(facts.without_effect)
            ),
            "use other namespaces for workloads, and remove the label: "
            f"kubectl label namespace {facts.without_effect[0]} {names.ENABLED_LABEL}-",
        )
    if not facts.selected_namespaces:
        return warning(
            "no namespace is handed to Slurm",
            f"kubectl label namespace NAME {names.ENABLED_LABEL}=true",
        )
    return ok(f"{facts.selected_namespaces} namespaces are handed to Slurm")


def _daemon_sets(facts: KubeFacts) -> Result:
    if facts.refused_daemon_sets is None:
        return not_checked("DaemonSets or admission policies may not be read")
    if facts.refused_daemon_sets:
        return warning(
            f"DaemonSets get no new pods on Slurm's nodes: {', '.join(facts.refused_daemon_sets)}",
            "if they are the cluster's own, list their namespaces in policies.direct.namespaces of "
            "the chart; otherwise remove their toleration",
        )
    return ok("no DaemonSet that tolerates the taint of Slurm's nodes is refused")


def _keys(facts: KubeFacts) -> Result:
    if facts.key_holders is None:
        return not_checked("Controllers, roles or role bindings may not be read")
    if not facts.key_holders:
        return ok("no Slurm runs in pods")
    open_to = {namespace: who for namespace, who in facts.key_holders.items() if who}
    if open_to:
        access = "; ".join(f"{namespace}: {', '.join(who)}" for namespace, who in open_to.items())
        return warning(
            f"besides administrators, these can get the keys of a Slurm in pods, and so be root in it: {access}",
            "if they do not administer that Slurm, give them another namespace, revoke these rights and "
            "replace the keys (docs/security.md)",
        )
    return ok(
        "only administrators can get the keys of a Slurm in pods; namespaces: "
        f"{', '.join(facts.key_holders)}"
    )


CHECKS: Mapping[str, Check[KubeFacts]] = {
    "Kubernetes": _version,
    "Kubernetes clock": _clock,
    "settings": _settings,
    "scheduler profile": _profile,
    "webhook configurations": _webhooks,
    "webhook": _admission,
    "policies": _policies,
    "leaders": _leaders,
    "rights": _rights,
    "device profiles": _device_profiles,
    "namespaces": _namespaces,
    "DaemonSets": _daemon_sets,
    "keys of Slurm in pods": _keys,
}
