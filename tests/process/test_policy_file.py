"""The policy in the settings file: what is refused in it, and that a changed file holds without a restart."""

import asyncio
import os
from pathlib import Path

import pytest
import structlog
import yaml

from bridge.domain.request.rules import SLURM_JOB, Policy, Requester
from bridge.settings import policy_file
from bridge.settings.configuration import Sources
from bridge.settings.policy_file import PolicyFile
from bridge.settings.schema import ENV_PREFIX, Settings
from bridge.settings.slurm import Slurm
from slurmruntime.process.metrics import Metrics
from slurmruntime.settings import sources as settings_sources
from tests.make.samples import value
from tests.servers import until

ALICE = Requester(user="alice", groups=())

LAB = {"name": "lab", "match": {"namespaces": ["lab-*"]}, "user": "{namespace}"}
REST = {"name": "rest", "user": "nobody"}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in os.environ:
        if variable.startswith(ENV_PREFIX):
            monkeypatch.delenv(variable)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def write(config: Path, *rules: object, **sections: object) -> None:
    """All at once, as a mounted ConfigMap changes."""
    new = config.with_suffix(".new")
    new.write_text(yaml.safe_dump({"policy": {"rules": list(rules)}, **sections}))
    new.replace(config)


def spoil(config: Path, text: str | None) -> None:
    """Leave this there, or nothing."""
    config.unlink()
    if text is not None:
        config.write_text(text)


def faults(config: Path) -> list[str]:
    with pytest.raises(settings_sources.Invalid) as caught:
        Sources(program="webhook", config=config, secrets_dir=None).read()
    return [fault.replace(f" in {config}", "") for fault in caught.value.faults]


def rule_of(current: Policy, namespace: str) -> str:
    found = current.candidates(ALICE, namespace)
    return found[0].name if found else ""


class TestFaults:
    def test_all_of_them_come_at_once_and_say_where_they_are(self, config: Path) -> None:
        write(
            config,
            {
                "name": "two words",
                "user": "{namespace}",
                "match": {"name_spaces": ["a"], "service_accounts": ["default"]},
                "nice": {"min": 5, "max": 1},
                "time_limit_max_min": 0,
            },
            {"name": "b", "group": "g", "priority": {}},
            {"name": "c", "user": "{uid}", "qos": "high"},
        )

        assert [
            "policy.rules[0].name: string should match pattern '^[A-Za-z0-9][-A-Za-z0-9_.]{0,62}$', found 'two words'",
            "policy.rules[0].match.name_spaces: no such setting, found ['a']",
            "policy.rules[0].match.service_accounts: no such setting, found ['default']",
            "policy.rules[0].nice: max must be at least min, found 1 and 5, found {'max': 1, 'min': 5}",
            "policy.rules[0].time_limit_max_min: input should be greater than or equal to 1, found 0",
            "policy.rules[1].user: is missing",
            "policy.rules[1].priority.max: is missing",
            "policy.rules[2].qos: input should be a valid dictionary or instance of ChoiceSection, found 'high'",
        ] == faults(config)

    def test_templates_name_only_what_is_known(self, config: Path) -> None:
        write(config, {"name": "a", "user": "{slurm_user}", "group": "{uid}"})

        (fault,) = faults(config)
        assert fault.startswith(
            "policy.rules[0]: user may contain {namespace}, {user}, found {slurm_user}"
        )

    def test_rules_that_cannot_go_together(self, config: Path) -> None:
        limited = {"name": "rest", "user": "u", "partition": {"allowed": ["gpu"]}}
        write(config, REST, limited)

        (fault,) = faults(config)
        assert (
            "policy.rules[0] (rest): it matches everyone, so no rule after it ever applies" in fault
        )
        assert "policy.rules[1] (rest): rules[0] has the same name" in fault
        assert (
            "policy.rules[1] (rest): partitions are limited, so partition.default or slurm.partition is required"
            in fault
        )

    def test_a_rule_for_everyones_pods_leaves_the_slurm_jobs_to_others(self, config: Path) -> None:
        jobs = {"name": "jobs", "user": "u", "match": {"kinds": ["SlurmJob"]}}
        write(config, REST, jobs)
        assert 2 == len(
            Sources(program="webhook", config=config, secrets_dir=None).read().policy.rules
        )

        both = {**REST, "match": {"kinds": ["SlurmJob", "Pod"]}}
        write(config, both, jobs)
        (fault,) = faults(config)
        assert "it matches everyone, so no rule after it ever applies" in fault

    def test_a_default_partition_for_all_is_enough(self, config: Path) -> None:
        limited = {"name": "a", "user": "u", "partition": {"allowed": ["gpu"]}}
        write(config, limited, slurm={"partition": "cpu"})

        read = policy_file.compiled(
            Sources(program="webhook", config=config, secrets_dir=None).read()
        )

        assert "cpu" == read.by_name["a"].partition.default


class TestCompiled:
    def test_a_rule_has_everything_that_was_written(self, config: Path) -> None:
        write(
            config,
            {
                **LAB,
                "user_table": {"lab-a": "a"},
                "account": {"default": "x", "allowed": ["y*"]},
                "nice": {"min": -5, "max": 5},
                "licenses": [],
                "exclusive": False,
            },
        )
        (rule,) = policy_file.compiled(
            Sources(program="webhook", config=config, secrets_dir=None).read()
        ).rules

        assert ("lab", {"lab-a": "a"}, "x") == (rule.name, rule.user_table, rule.account.default)
        assert rule.account.allowed.match("yes")
        assert rule.nice is not None
        assert (-5, 5) == (rule.nice.least, rule.nice.most)
        assert not rule.licenses
        assert not rule.exclusive
        assert rule.node_choice

    def test_rules_may_come_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SLURM_BRIDGE_POLICY__RULES", '[{"name": "a", "user": "u"}]')

        read = Sources(program="webhook", config=None, secrets_dir=None).read()

        assert ["a"] == [rule.name for rule in read.policy.rules]

    def test_without_rules_all_jobs_are_the_configured_users(self) -> None:
        slurm = Slurm(user="k8s", group="k8s", account="pods", partition="p")
        read = policy_file.compiled(Settings(slurm=slurm))
        (rule,) = read.candidates(Requester(), "anywhere")

        assert ("k8s", "k8s", "pods", "p") == (
            rule.user,
            rule.group,
            rule.account.default,
            rule.partition.default,
        )
        assert rule.partition.is_open
        assert not rule.qos.allowed
        assert rule.nice is None
        assert not rule.account.allowed
        assert not rule.reservation.allowed
        assert rule.priority is None

    def test_the_configured_user_has_no_slurm_jobs(self) -> None:
        """Whoever might create a pod would run any program as that user."""
        read = policy_file.compiled(Settings(slurm=Slurm(user="k8s", group="k8s")))

        assert () == read.candidates(ALICE, "anywhere", kind=SLURM_JOB)
        assert "no policy rule is for SlurmJobs" in read.why_no_rule(
            ALICE, "anywhere", kind=SLURM_JOB
        )

    def test_without_rules_and_user_nobody_has_jobs(self) -> None:
        """Slurm would take them for root's, whom no limit holds."""
        read = policy_file.compiled(Settings())

        assert () == read.candidates(ALICE, "anywhere")
        assert "neither policy.rules nor slurm.user is set" in read.why_no_rule(ALICE, "anywhere")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("test")


@pytest.fixture
def file(config: Path, metrics: Metrics) -> PolicyFile:
    write(config, LAB)
    sources = Sources(program="webhook", config=config, secrets_dir=None)
    return PolicyFile(sources, sources.read(), metrics)


class TestReload:
    async def test_a_changed_file_holds_at_once(
        self, config: Path, file: PolicyFile, metrics: Metrics
    ) -> None:
        assert ("lab", "") == (rule_of(file.current, "lab-a"), rule_of(file.current, "other"))
        write(config, LAB, REST)

        with structlog.testing.capture_logs() as logs:
            await file.reload()

        assert ("lab", "rest") == (rule_of(file.current, "lab-a"), rule_of(file.current, "other"))
        assert [{"event": "policy.reloaded", "rules": 2, "before": 1, "log_level": "info"}] == logs
        assert 2 == value(metrics, "slurm_bridge_policy_rules")
        assert 2 == value(metrics, "slurm_bridge_policy_reloads_total", outcome="loaded")

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("policy: {rules: [{name: lab}]}", id="a fault"),
            pytest.param("policy: {rules: [", id="no YAML"),
            pytest.param("policy: {}\nslrum: {user: root}", id="an unknown key"),
            pytest.param("policy: {}\nlog: {levle: info}", id="an unknown key of a section"),
            pytest.param("", id="empty"),
            pytest.param("policy: {}\nlog: {level: loud}", id="a fault elsewhere"),
            pytest.param(None, id="no file"),
        ],
    )
    async def test_of_a_broken_file_nothing_is_taken(
        self, config: Path, file: PolicyFile, metrics: Metrics, text: str | None
    ) -> None:
        spoil(config, text)

        with structlog.testing.capture_logs() as logs:
            await file.reload()

        assert "lab" == rule_of(file.current, "lab-a")
        assert ["policy.reload_refused"] == [log["event"] for log in logs]
        assert logs[0]["faults"]
        assert 0 == value(metrics, "slurm_bridge_policy_is_current")
        assert 1 == value(metrics, "slurm_bridge_policy_reloads_total", outcome="refused")

        write(config, LAB, REST)
        await file.reload()

        assert "rest" == rule_of(file.current, "other")
        assert 1 == value(metrics, "slurm_bridge_policy_is_current")

    async def test_the_file_is_looked_at_by_itself(self, config: Path, file: PolicyFile) -> None:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(file.run(stop))
            write(config, LAB, REST)
            await until(lambda: rule_of(file.current, "other") == "rest", 30)
            stop.set()

    async def test_rules_that_are_taken_away_are_gone(self, config: Path, file: PolicyFile) -> None:
        write(config)

        await file.reload()

        assert "" == rule_of(file.current, "lab-a")
