"""Settings of the release before: their names do no harm for one release, and renamed ones keep their value."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from agent import __main__ as agent
from agent import pinner
from bridge.domain.caps import DEFAULT
from bridge.domain.lifecycle.breaker import Limits
from bridge.domain.lifecycle.decision import Deadlines
from bridge.domain.nodes.state import NodeRules
from bridge.domain.request import build
from bridge.reconcile.leadership import PLACING, RUNNING
from bridge.reconcile.loop import WORKERS
from bridge.reconcile.program import SLURM_CONNECTIONS, TEMPO
from bridge.settings import configuration, removed
from bridge.settings.configuration import Sources
from bridge.settings.schema import Settings
from slurmcli import installation
from slurmruntime.kube.client import REQUEST_TIMEOUT_S
from slurmruntime.settings import sources
from slurmruntime.settings.sources import Name
from slurmruntime.values import certificates

CONSTANTS: Mapping[str, object] = {
    "agent.cgroup_root": agent.CGROUP_ROOT,
    "agent.interval_s": pinner._LONGEST_PAUSE,
    "agent.system_root": agent.SYSTEM_ROOT,
    "certificates.authority_lifetime_s": certificates.AUTHORITY_LIFETIME,
    "certificates.lifetime_s": certificates.LIFETIME,
    "controllers.device_patience_s": NodeRules().device_patience,
    "controllers.eviction_share": Limits().share,
    "controllers.node_interval_s": TEMPO.slurm_nodes_s,
    "controllers.orphan_interval_s": TEMPO.orphans_s,
    "controllers.poll_interval_s": RUNNING.busy_s,
    "controllers.restore_deadline_s": Deadlines().restore_deadline,
    "controllers.self_test_interval_s": TEMPO.self_test_s,
    "controllers.workers": WORKERS,
    "kubernetes.request_timeout_s": REQUEST_TIMEOUT_S,
    "leader_election.lease_duration_s": TEMPO.lease.duration_s,
    "leader_election.renew_deadline_s": TEMPO.lease.renew_deadline_s,
    "leader_election.retry_period_s": TEMPO.lease.retry_period_s,
    "operator.authority_lifetime_s": certificates.AUTHORITY_LIFETIME,
    "operator.certificate_lifetime_s": certificates.LIFETIME,
    "placement.avoid_node_s": Deadlines().avoid_node,
    "placement.default_memory_mib": build.DEFAULT_MEMORY_MIB,
    "placement.idle_poll_interval_s": PLACING.idle_s,
    "placement.incomplete_after_s": Deadlines().incomplete_after,
    "placement.poll_interval_s": PLACING.busy_s,
    "placement.quiet_period_s": PLACING.quiet_s,
    "placement.tell_after_s": Deadlines().tell_after,
    "placement.tells_per_second": PLACING.first_reasons_per_s,
    "placement.submit_concurrency": SLURM_CONNECTIONS,
    "placement.workers": WORKERS,
    "slurm.connections": SLURM_CONNECTIONS,
}
WORDS = {
    "agent.node",
    "certificates.hosts",
    "certificates.release",
    "controllers.self_test_namespace",
    "escrow.cert_file",
    "escrow.key_file",
    "leader_election.enabled",
    "log.format",
    "placement.allowed_fields",
    "placement.default_time_limit_min",
    "placement.when_full",
    "slurm.token_warning_s",
    "slurm_jobs.companion_account",
    "sylabs.addresses",
    "sylabs.inventory_namespace",
    "webhook.track_fields",
}
"""No number stands for these."""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "bridge.yaml"


def nested(values: Mapping[Name, object]) -> str:
    """As YAML."""
    sections: dict[str, dict[str, object]] = {}
    for (section, field), value in values.items():
        sections.setdefault(section, {})[field] = value
    return json.dumps(sections)


def outdated(program: str, config: Path) -> tuple[Settings, list[str]]:
    lines: list[str] = []
    return Sources(program=program, config=config, secrets_dir=None).read(lines), lines


def test_each_value_is_that_of_the_constant() -> None:
    caps = {
        ("caps", name): getattr(DEFAULT, name)
        for section, name in removed.REMOVED
        if section == "caps"
    }
    constants = caps | {tuple(name.split(".")): value for name, value in CONSTANTS.items()}

    assert removed.REMOVED.keys() == constants.keys() | {tuple(name.split(".")) for name in WORDS}
    for name, value in constants.items():
        number = value.total_seconds() if isinstance(value, timedelta) else value
        assert removed.REMOVED[name] == (str(number) if isinstance(number, Path) else number), name


def test_no_setting_has_an_old_name() -> None:
    old = removed.REMOVED.keys() | removed.RENAMED.keys()

    assert not old & set(sources.names(Settings))
    assert set(removed.RENAMED.values()) <= set(sources.names(Settings))


def test_old_names_do_no_harm(config: Path) -> None:
    config.write_text(nested(removed.REMOVED))

    settings, lines = outdated("extender", config)

    assert Settings() == settings
    assert len(removed.REMOVED) == len(lines)
    assert not [line for line in lines if "found" in line]
    assert (
        f"placement.workers in {config}: no longer a setting: it is always 16; remove it" in lines
    )


@pytest.mark.parametrize(
    ("value", "named"),
    [(32, "32"), ("x" * 10_000, "'xxx"), ([[[]]] * 10_000, "[[[]]"), (None, "None")],
    ids=["other", "long", "list", "nothing"],
)
def test_a_value_that_no_longer_counts_is_named(config: Path, value: object, named: str) -> None:
    config.write_text(nested({("placement", "workers"): value}))

    _settings, (line,) = outdated("extender", config)

    assert f"always 16, found {named}" in line
    assert len(line) < len(str(config)) + 400


def test_they_may_come_from_everywhere_and_are_reported_in_one_line(
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config.write_text("leader_election: {lease_duration_s: 60}")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "controllers__workers").write_text("16\n")
    monkeypatch.setenv("SLURM_BRIDGE_AGENT__CGROUP_ROOT", "/host/cgroup")
    monkeypatch.setenv("SLURM_BRIDGE_SECRETS_DIR", str(tmp_path / "secrets"))

    configuration.load("agent", ["--config", str(config)])

    (line,) = capsys.readouterr().err.splitlines()
    said = json.loads(line)
    assert ("warning", "settings.outdated") == (said["level"], said["event"])
    assert [
        f"leader_election.lease_duration_s in {config}: no longer a setting: it is always 15, found 60; remove it",
        "SLURM_BRIDGE_AGENT__CGROUP_ROOT: no longer a setting: it is always /host/cgroup; remove it",
        f"{tmp_path}/secrets/controllers__workers: no longer a setting: it is always 16; remove it",
    ] == said["settings"]


def test_the_doctor_reads_the_configuration_of_the_release_before() -> None:
    settings, faults = installation._parse(nested(removed.REMOVED), "slurm-bridge-system")

    assert (Settings(), ()) == (settings, faults)


def test_without_any_nothing_is_said(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text("log: {level: debug}")

    configuration.load("agent", ["--config", str(config)])

    assert "" == capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "cert_file"),
    [("webhook", "/a.crt"), ("extender", "/b.crt"), ("leader", "/b.crt")],
)
def test_each_program_keeps_its_server_under_the_old_names(
    config: Path, program: str, cert_file: str
) -> None:
    config.write_text(
        "webhook: {cert_file: /a.crt, key_file: /a.key}\nextender: {cert_file: /b.crt, key_file: /b.key}"
    )

    settings, lines = outdated(program, config)

    assert cert_file == settings.server.cert_file
    assert cert_file.replace("crt", "key") == settings.server.key_file
    assert f"webhook.cert_file in {config}: is server.cert_file now; rename it" in lines
    assert 4 == len(lines)


def test_the_new_name_wins_and_a_later_source_wins_over_both(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text("webhook: {listen: 'old:1'}\nserver: {listen: 'new:2'}")
    assert "new:2" == outdated("webhook", config)[0].server.listen

    monkeypatch.setenv("SLURM_BRIDGE_WEBHOOK__LISTEN", "variable:3")
    assert "variable:3" == outdated("webhook", config)[0].server.listen


@pytest.mark.parametrize("users", [{}, {"users": ["bob"]}])
def test_service_accounts_are_users(config: Path, users: dict[str, list[str]]) -> None:
    match = {**users, "service_accounts": ["ci/*", "lab/argo"]}
    config.write_text(
        json.dumps({"policy": {"rules": [{"name": "a", "user": "u", "match": match}]}})
    )

    settings, (line,) = outdated("webhook", config)

    accounts = ("system:serviceaccount:ci:*", "system:serviceaccount:lab:argo")
    assert (*users.get("users", ()), *accounts) == settings.policy.rules[0].match.users
    assert "rules[0].match.service_accounts: name them in match.users" in line


def test_the_chart_says_on_the_command_line_what_it_knows() -> None:
    arguments = (
        '--release=r --hosts={"webhook":["w"],"scheduler":[]} --self-test-namespace=t'
        " --companion-account=c --node=n"
    )

    assert (
        configuration.Installation(
            release="r",
            hosts={"webhook": ["w"], "scheduler": []},
            self_test_namespace="t",
            companion_account="c",
            node="n",
        )
        == configuration.sources("agent", arguments.split()).installation
    )


@pytest.mark.parametrize("hosts", ["{", "[]", '{"webhook": "w"}'])
def test_hosts_that_make_no_sense_are_refused(
    hosts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        configuration.sources("controllers", [f"--hosts={hosts}"])

    assert "argument --hosts: invalid" in capsys.readouterr().err


def test_a_fault_of_an_old_name_names_it(config: Path) -> None:
    config.write_text("webhook: {listen: nowhere}")

    with pytest.raises(sources.Invalid, match=r"^webhook\.listen in .*: must be HOST:PORT"):
        outdated("webhook", config)
