import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from bridge.settings import configuration, reference
from bridge.settings.schema import ENV_PREFIX, Settings
from docs.generate import settings as settings_page
from slurmruntime.settings import sources

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in os.environ:
        if variable.startswith(ENV_PREFIX):
            monkeypatch.delenv(variable)


def read(
    *, config: Path | None = None, env: Mapping[str, str] | None = None, files: Path | None = None
) -> Settings:
    return sources.read(
        Settings, config=config, environment=env or {}, prefix=ENV_PREFIX, secrets_dir=files
    )


def faults(
    *, config: Path | None = None, env: Mapping[str, str] | None = None, files: Path | None = None
) -> tuple[str, ...]:
    with pytest.raises(sources.Invalid) as caught:
        read(config=config, env=env, files=files)
    return caught.value.faults


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "bridge.yaml"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    directory = tmp_path / "secrets"
    directory.mkdir()
    return directory


class TestSources:
    def test_without_any_source_the_defaults_hold(self) -> None:
        assert Settings() == read()

    def test_files_win_over_the_environment_and_that_over_yaml(
        self, config: Path, files: Path
    ) -> None:
        config.write_text("slurm: {partition: yaml, account: yaml, mcs_label: yaml}")
        env = {"SLURM_BRIDGE_SLURM__ACCOUNT": "env", "SLURM_BRIDGE_SLURM__MCS_LABEL": "env"}
        (files / "slurm__mcs_label").write_text("file\n")

        slurm = read(config=config, env=env, files=files).slurm

        assert ("yaml", "env", "file") == (slurm.partition, slurm.account, slurm.mcs_label)

    def test_a_setting_without_section_is_read_from_everywhere(
        self, config: Path, files: Path
    ) -> None:
        config.write_text("cluster_id: a\nscheduler_name: one")
        (files / "scheduler_name").write_text("two")
        given = read(config=config, env={"SLURM_BRIDGE_CLUSTER_ID": "b"}, files=files)

        assert ("b", "two") == (given.cluster_id, given.scheduler_name)

    def test_one_line_of_text_can_be_a_list_a_map_a_number_or_absence(self) -> None:
        given = read(
            env={
                "SLURM_BRIDGE_PLACEMENT__REQUIRED_LIMITS": "cpu, memory",
                "SLURM_BRIDGE_CONTROLLERS__GPU_RESOURCES": '{"example.com/gpu": "gpu:x"}',
                "SLURM_BRIDGE_PLACEMENT__DEFAULT_CPUS": "0.25",
                "SLURM_BRIDGE_CONTROLLERS__KEPT_SLOTS_DEADLINE_S": "null",
                "SLURM_BRIDGE_SLURM__KICK": "true",
            }
        )

        assert ("cpu", "memory") == given.placement.required_limits
        assert {"example.com/gpu": "gpu:x"} == given.controllers.gpu_resources
        assert 0.25 == given.placement.default_cpus
        assert given.controllers.kept_slots_deadline_s is None
        assert given.slurm.kick

    @pytest.mark.parametrize(
        ("text", "hosts"),
        [
            ("ctl", ("ctl",)),
            ("[ctl-a, 10.0.0.2]", ("ctl-a", "10.0.0.2")),
            ("ctl-a, fd00::2", ("ctl-a", "fd00::2")),
        ],
    )
    def test_a_host_can_be_one_or_several(
        self, config: Path, text: str, hosts: tuple[str, ...]
    ) -> None:
        config.write_text(f"slurm: {{controller_host: {text}}}" if "[" in text else "{}")
        env = {} if "[" in text else {"SLURM_BRIDGE_SLURM__CONTROLLER_HOST": text}

        assert hosts == read(config=config, env=env).slurm.controller_host

    def test_a_section_without_content_is_no_fault(self, config: Path) -> None:
        config.write_text("slurm:\nlog: {level: debug}\n")

        assert "debug" == read(config=config).log.level

    @pytest.mark.parametrize("content", ["# nothing yet\n", "{}\n"])
    def test_a_file_that_says_nothing_is_no_fault(self, config: Path, content: str) -> None:
        config.write_text(content)

        assert Settings() == read(config=config)

    @pytest.mark.parametrize("content", ["", "\n \n"])
    def test_an_empty_file_is_one_that_is_being_written(self, config: Path, content: str) -> None:
        config.write_text(content)

        with pytest.raises(sources.Invalid, match="the file is empty"):
            read(config=config)

    def test_the_kubelets_hidden_links_are_passed_over(self, files: Path) -> None:
        (files / "..2026").mkdir()
        (files / "..2026" / "slurm__url").write_text("http://elsewhere:1\n")
        (files / "..data").symlink_to("..2026")
        (files / "slurm__url").symlink_to("..data/slurm__url")

        assert ("http://elsewhere:1",) == read(files=files).slurm.url

    def test_variables_of_others_under_our_prefix_are_passed_over(self) -> None:
        env = {
            "SLURM_BRIDGE_WEBHOOK_SERVICE_HOST": "10.0.0.1",
            "SLURM_BRIDGE_WEBHOOK_SERVICE_PORT_HTTPS": "443",
            "SLURM_BRIDGE_WEBHOOK_PORT": "tcp://10.0.0.1:443",
            "SLURM_BRIDGE_WEBHOOK_PORT_443_TCP_ADDR": "10.0.0.1",
            "SLURM_BRIDGE_METRICS_EXTENDER": "http://127.0.0.1:8080/metrics",
            "SLURM_BRIDGE_SECRETS_DIR": "/nowhere",
            "SLURM_JWT": "x",
        }

        assert Settings() == read(env=env)


class TestFaults:
    def test_all_faults_of_all_sources_come_at_once(self, config: Path, files: Path) -> None:
        config.write_text("slurm: {acount: a, user: alice}\nplacemnt: {binder: extender}\n")
        (files / "slurm__tokenfile").write_text("x")
        env = {
            "SLURM_BRIDGE_SLURM_URL": "http://x",
            "SLURM_BRIDGE_LOG__LEVEL": "loud",
            "SLURM_BRIDGE_PLACEMENT__REQUIRED_LIMITS": "cpu,memry",
        }

        assert (
            f"slurm.acount in {config}: no such setting; did you mean slurm.account?",
            f"placemnt.binder in {config}: no such setting; did you mean placement.binder?",
            "SLURM_BRIDGE_SLURM_URL: no such setting; did you mean slurm.url?",
            f"{files}/slurm__tokenfile: no such setting; did you mean slurm.token_file?",
            "SLURM_BRIDGE_LOG__LEVEL: input should be 'debug', 'info', 'warning' or 'error', found 'loud'",
            (
                "slurm: user and group go together (Slurm would take the token's group), "
                "found user='alice', group=''"
            ),
            (
                "SLURM_BRIDGE_PLACEMENT__REQUIRED_LIMITS[1]: input should be 'cpu', 'memory' or 'ephemeral-storage', found 'memry'"
            ),
        ) == faults(config=config, env=env, files=files)

    def test_a_typo_fails_even_if_everything_else_is_right(self) -> None:
        env = {"SLURM_BRIDGE_SLURM__CONTROLER_PORT": "1"}

        assert (
            "SLURM_BRIDGE_SLURM__CONTROLER_PORT: no such setting; did you mean slurm.controller_port?",
        ) == faults(env=env)

    @pytest.mark.parametrize(
        "variable", ["SLURM_BRIDGE_CLUSTERID", "SLURM_BRIDGE_SLURM__URL__X", "SLURM_BRIDGE_SLURM"]
    )
    def test_a_variable_that_begins_like_a_setting_must_be_one(self, variable: str) -> None:
        (fault,) = faults(env={variable: "x"})

        assert fault.startswith(f"{variable}: no such setting")

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            pytest.param("a: [", ": not YAML: ", id="a bracket left open"),
            pytest.param("- a", ": expected sections with settings, found ['a']", id="a list"),
            pytest.param("log: {}\nlog: {}", ": line 2: log is a duplicate key", id="twice"),
            pytest.param("log: debug", "log in ", id="a value in place of a section"),
            pytest.param("on: 1", "True in ", id="a key that YAML takes for a truth value"),
        ],
    )
    def test_a_file_of_another_shape_is_told_so(
        self, config: Path, content: str, fault: str
    ) -> None:
        config.write_text(content)
        (found,) = faults(config=config)

        assert fault in found

    def test_what_cannot_be_read_is_named(self, tmp_path: Path) -> None:
        config, files = tmp_path / "a.yaml", tmp_path / "b"

        assert (
            f"{config}: No such file or directory",
            f"{files}: No such file or directory",
        ) == faults(config=config, files=files)

    @pytest.mark.parametrize(
        ("section", "field", "value"),
        [
            ("slurm", "url", "slurmrestd:6820"),
            ("slurm", "controller_port", "0"),
            ("slurm", "controller_host", "ctl:6817"),
            ("slurm", "token_file", ""),
            ("server", "listen", "8443"),
            ("health", "listen", "0.0.0.0:99999"),
            ("kubernetes", "namespace", "Slurm"),
            ("slurm", "request_timeout_s", "0"),
            ("slurm", "request_timeout_s", "inf"),
            ("controllers", "gpu_resources", "{"),
            ("controllers", "device_resources", "{"),
            ("controllers", "taint_effect", "No"),
            ("controllers", "eviction_always", "1.5"),
        ],
    )
    def test_a_value_that_makes_no_sense_is_refused_with_its_place(
        self, section: str, field: str, value: str
    ) -> None:
        variable = f"SLURM_BRIDGE_{section}__{field}".upper()
        (fault,) = faults(env={variable: value})

        assert fault.startswith((f"{variable}: ", f"{variable}[0]: "))
        assert fault.endswith(f"found {value!r}")

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"slurm": {"group": "users"}}, "user and group go together"),
            ({"scheduler_name": "mine-binder"}, "must not end in -binder"),
            ({"sylabs": {"enabled": True}}, "sylabs.enabled needs slurm_jobs.enabled"),
            ({"sylabs": {"ssh_rules": {"a": "b"}}}, "there is no policy rule b"),
        ],
    )
    def test_settings_that_contradict_each_other_are_refused(
        self, values: dict[str, object], words: str
    ) -> None:
        with pytest.raises(ValidationError, match=words.replace("*", r"\*")):
            Settings.model_validate(values)


class TestPlainHttp:
    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1:6820",
            "[::1]:6820",
            "localhost:6820",
            "slurmrestd:6820",
            "slurmrestd.slurm.svc:6820",
            "slurmrestd.slurm.svc.cluster.local.:6820",
        ],
    )
    def test_it_is_for_this_machine_and_this_cluster(self, host: str) -> None:
        env = {"SLURM_BRIDGE_SLURM__URL": f"http://{host}"}

        assert (f"http://{host}",) == read(env=env).slurm.url

    @pytest.mark.parametrize(
        "host",
        [
            "slurmrestd.hpc.example:6820",
            "slurmrestd.hpc:6820",
            "10.0.0.7:6820",
            "[fd00::7]:6820",
            "127.0.0.1.example:6820",
            "localhost@10.0.0.7:6820",
        ],
    )
    def test_elsewhere_it_is_refused_unless_somebody_accepts_it(
        self, config: Path, host: str
    ) -> None:
        config.write_text(f"slurm: {{url: ['https://fine.example', 'http://{host}']}}")
        (fault,) = faults(config=config)
        accepted = read(config=config, env={"SLURM_BRIDGE_SLURM__INSECURE": "true"})

        assert "insecure: true" in fault
        assert f"found url=http://{host}" in fault
        assert accepted.slurm.insecure


class TestLoad:
    def test_settings_come_from_the_command_line_and_the_environment(
        self, config: Path, files: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config.write_text("log: {level: error}")
        (files / "cluster_id").write_text("c1")
        monkeypatch.setenv("SLURM_BRIDGE_SECRETS_DIR", str(files))
        given = configuration.load("extender", ["--config", str(config)])

        assert ("error", "c1") == (given.log.level, given.cluster_id)

    def test_faults_end_the_program_with_code_2(
        self, config: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        config.write_text("slurm: {workers: 1}\nlog: {level: loud}")
        with pytest.raises(SystemExit) as caught:
            configuration.load("extender", ["--config", str(config)])
        out, err = capsys.readouterr()

        assert caught.value.code == 2
        assert "" == out
        assert err.startswith("extender: the settings have faults:\n  slurm.workers in ")
        assert "\n  log.level in " in err

    def test_help_tells_every_setting(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as caught:
            configuration.load("extender", ["--help"])
        out = capsys.readouterr().out

        assert 0 == caught.value.code
        assert "    bind_deadline_s: number > 0, seconds, default 120\n" in out
        for name in sources.names(Settings):
            listed = f"{'  ' * len(name)}{name[-1]}: " in out
            assert listed or f"\n{'.'.join(name)}[]:  # " in out


class TestReference:
    def test_every_setting_has_a_meaning_and_a_default_that_is_accepted(self) -> None:
        groups = list(reference.groups(Settings))
        rows = [row for group in groups for row in group.rows]

        assert all(row.meaning.endswith(".") and row.accepts for row in rows)
        top = [row for group in groups if not group.name.endswith("[]") for row in group.rows]
        lists = [group.name.removesuffix("[]") for group in groups if group.name.endswith("[]")]
        assert {".".join(name) for name in sources.names(Settings)} == {
            *lists,
            *(".".join(row.name) for row in top),
        }

    def test_the_documentation_is_up_to_date(self) -> None:
        written = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")

        assert settings_page.render() == written, "run `make docs`"


def test_agents_pin_no_parts_of_cpus() -> None:
    env = {"SLURM_BRIDGE_AGENT__PIN_CORES": "true", "SLURM_BRIDGE_SLURM__MILLI_CPU_PER_CPU": "100"}

    (fault,) = faults(env=env)

    assert "agent.pin_cores needs slurm.milli_cpu_per_cpu 1000, found 100" in fault
