"""Names that were settings in the release before: they do no harm for one release, and are reported at start."""

from collections.abc import Iterator, Mapping
from typing import Final

from slurmruntime.settings.sources import Name, SettingValue, shown


def _argument(option: str) -> str:
    return f"what the program's argument --{option} says, which the chart sets"


_ALWAYS: Final[Mapping[str, object]] = {
    "agent.cgroup_root": "/host/cgroup",
    "agent.interval_s": 10,
    "agent.node": _argument("node"),
    "agent.system_root": "/sys/devices/system",
    "caps.affinity_expressions": 200,
    "caps.affinity_terms": 50,
    "caps.affinity_values": 2000,
    "caps.annotation_bytes": 65_536,
    "caps.annotations": 200,
    "caps.host_ports": 100,
    "caps.label_bytes": 16_384,
    "caps.labels": 100,
    "caps.object_bytes": 524_288,
    "caps.tolerations": 50,
    "certificates.authority_lifetime_s": 3650 * 86_400,
    "certificates.hosts": _argument("hosts"),
    "certificates.lifetime_s": 90 * 86_400,
    "certificates.release": _argument("release"),
    "controllers.device_patience_s": 300,
    "controllers.eviction_share": 0.3,
    "controllers.node_interval_s": 5,
    "controllers.orphan_interval_s": 30,
    "controllers.poll_interval_s": 1,
    "controllers.restore_deadline_s": 600,
    "controllers.self_test_interval_s": 60,
    "controllers.self_test_namespace": _argument("self-test-namespace"),
    "controllers.workers": 16,
    "escrow.cert_file": "tls.crt beside escrow.token_file",
    "escrow.key_file": "tls.key beside escrow.token_file",
    "kubernetes.request_timeout_s": 10,
    "leader_election.enabled": True,
    "leader_election.lease_duration_s": 15,
    "leader_election.renew_deadline_s": 10,
    "leader_election.retry_period_s": 2,
    "log.format": "auto",
    "operator.authority_lifetime_s": 3650 * 86_400,
    "operator.certificate_lifetime_s": 90 * 86_400,
    "placement.allowed_fields": "none: rules say what users may set (policy.rules)",
    "placement.avoid_node_s": 300,
    "placement.default_memory_mib": 256,
    "placement.default_time_limit_min": "that of the partition",
    "placement.idle_poll_interval_s": 2,
    "placement.incomplete_after_s": 60,
    "placement.poll_interval_s": 0.5,
    "placement.quiet_period_s": 10,
    "placement.submit_concurrency": 8,
    "placement.tell_after_s": 2,
    "placement.tells_per_second": 20,
    "placement.when_full": "own-job",
    "placement.workers": 16,
    "slurm.connections": 8,
    "slurm.token_warning_s": "three days, or the last quarter of the token's lifetime",
    "slurm_jobs.companion_account": _argument("companion-account"),
    "sylabs.addresses": "without effect: slurm-config is not read",
    "sylabs.inventory_namespace": "without effect: slurm-config is not read",
    "webhook.track_fields": False,
}
"""The constant in place of each; `tests/settings/test_removed.py` compares them."""

REMOVED: Final[Mapping[Name, object]] = {tuple(k.split(".")): v for k, v in _ALWAYS.items()}

RENAMED: Final[Mapping[Name, Name]] = {
    (section, field): ("server", field)
    for section in ("webhook", "extender")
    for field in ("listen", "cert_file", "key_file")
}
_SERVES: Final = {"webhook": "webhook", "extender": "extender", "leader": "extender"}
"""Program -> the section of its HTTPS server."""


def adapt(values: dict[Name, SettingValue], program: str) -> Iterator[str]:
    """Take old names out of one source, yielding a line about each; a renamed setting keeps its value."""
    for name in sorted(REMOVED.keys() & values.keys()):
        item, always = values.pop(name), REMOVED[name]
        is_same = item.value in (always, _text(always))
        differs = "" if is_same else f", found {shown(item.value)}"
        yield f"{item.place}: no longer a setting: it is always {_text(always)}{differs}; remove it"
    for name in sorted(RENAMED.keys() & values.keys()):
        item, renamed = values.pop(name), RENAMED[name]
        if name[0] == _SERVES.get(program):
            values.setdefault(renamed, item)
        yield f"{item.place}: is {'.'.join(renamed)} now; rename it"
    if ("policy", "rules") in values:
        yield from _service_accounts(values["policy", "rules"])


def _service_accounts(rules: SettingValue) -> Iterator[str]:
    """Yield a line about each rule that names service accounts apart; `bridge.settings.policy` takes them for users."""
    for number, rule in enumerate(rules.value if isinstance(rules.value, list) else ()):
        match rule:
            case {"match": {"service_accounts": _}}:
                yield f"{rules.place}: rules[{number}].match.service_accounts: name them in match.users, as system:serviceaccount:NAMESPACE:NAME"
            case _:
                pass


def description(name: Name) -> str:
    """Return what to say about a name in the schema of the chart's values."""
    return f"No longer a setting: always {_text(REMOVED[name])}."


def _text(value: object) -> str:
    """Return a constant as YAML has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
