"""What is rendered: rights, pod security, configuration that fits its programs."""

import json
import os
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridge.settings.configuration import Sources
from bridge.settings.schema import ENV_PREFIX, Settings
from slurmruntime.values import names
from tests.chart.conftest import Render
from tests.chart.objects import (
    DEPLOYMENTS,
    OUTSIDE,
    OWN_WEBHOOKS,
    PROGRAMS,
    mounts,
    pod_spec,
    rights,
)
from tests.chart.rendering import CHART, Manifest, Rendered
from tests.chart.value_sets import VALUES


def test_the_definition_of_slurm_jobs_is_made_from_their_types(chart: Rendered) -> None:
    made = runpy.run_path(str(CHART.parent / "manifests.py"))["slurm_job"]()

    assert made == (CHART / "files/slurmjob.yaml").read_text(), "run `make manifests`"
    assert not chart.of_kind("CustomResourceDefinition")


def test_webhook_has_neither_slurms_token_nor_ours(chart: Rendered) -> None:
    spec = pod_spec(chart, "webhook")

    assert spec["automountServiceAccountToken"] is False
    assert {"/etc/slurm-bridge/config", "/etc/slurm-bridge/tls"} == set(mounts(spec))
    assert "slurm-token" not in yaml.safe_dump(spec)


@pytest.mark.parametrize("component", DEPLOYMENTS)
def test_pod_is_locked_down(chart: Rendered, component: str) -> None:
    spec = pod_spec(chart, component)
    (container,) = spec["containers"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} == set(container["resources"]["requests"])
    assert "memory" in container["resources"]["limits"]
    assert not [v for v in spec["volumes"] if v.keys() - {"name", "configMap", "secret"}]
    assert not spec.keys() & {"hostNetwork", "hostPID", "hostIPC"}


@pytest.mark.parametrize("component", DEPLOYMENTS)
def test_no_user_preempts_our_pods_or_answers_for_their_peers(
    chart: Rendered, component: str
) -> None:
    """What both come to is in `test_preemption` and `test_own_names`."""
    spec = pod_spec(chart, component)

    assert "system-node-critical" == spec["priorityClassName"]
    assert [{"name": "ndots", "value": "1"}] == spec["dnsConfig"]["options"]


@pytest.mark.parametrize("component", DEPLOYMENTS)
def test_there_are_two_of_each(chart: Rendered, component: str) -> None:
    deployment = chart.of_kind("Deployment")[f"slurm-bridge-{component}"]

    assert deployment["spec"]["replicas"] == 2


@pytest.mark.parametrize("component", DEPLOYMENTS)
def test_each_outlives_a_drain(chart: Rendered, component: str) -> None:
    budget = chart.of_kind("PodDisruptionBudget")[f"slurm-bridge-{component}"]
    template = chart.of_kind("Deployment")[f"slurm-bridge-{component}"]["spec"]["template"]

    assert budget["spec"]["maxUnavailable"] == 1
    assert (
        budget["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    )


def test_monitoring_is_there_where_it_is_wanted(render: Render, chart: Rendered) -> None:
    wanted = {part: {"enabled": True, "labels": {"a": "b"}} for part in ("podMonitor", "rules")}

    monitored = render({"monitoring": wanted})

    (rules,) = monitored.of_kind("PrometheusRule").values()
    (monitor,) = monitored.of_kind("PodMonitor").values()
    file = yaml.safe_load((CHART / "files/rules.yaml").read_text())
    assert file == rules["spec"]
    assert ["b", "b"] == [one["metadata"]["labels"]["a"] for one in (rules, monitor)]
    assert ["health"] == [one["port"] for one in monitor["spec"]["podMetricsEndpoints"]]
    assert not chart.of_kind("PrometheusRule")


def test_a_digest_wins_over_the_tag(render: Render) -> None:
    digest = f"sha256:{'a' * 64}"

    chart = render({"image": {"repository": "example.test/bridge", "tag": "1", "digest": digest}})

    (container,) = chart.of_kind("Deployment")["slurm-bridge-webhook"]["spec"]["template"]["spec"][
        "containers"
    ]
    assert f"example.test/bridge@{digest}" == container["image"]


def test_environment_and_arguments_may_be_added(render: Render) -> None:
    added = {"extraEnv": [{"name": "A", "value": "b"}], "extraArgs": ["--secrets-dir=/x"]}

    chart = render({"controllers": added})

    pod = chart.of_kind("Deployment")["slurm-bridge-controllers"]["spec"]["template"]["spec"]
    assert added["extraEnv"] == pod["containers"][0]["env"]
    assert "--secrets-dir=/x" == pod["containers"][0]["args"][-1]


def test_the_manifests_are_those_of_the_chart(helm: Path) -> None:
    module = runpy.run_path(str(CHART.parent / "manifests.py"))

    assert module["FILE"].read_text() == module["rendered"](str(helm)), "make manifests"


@pytest.mark.parametrize("component", ["webhook", "extender"])
def test_service_reaches_its_pods(chart: Rendered, component: str) -> None:
    service = chart.of_kind("Service")[f"slurm-bridge-{component}"]["spec"]
    template = chart.of_kind("Deployment")[f"slurm-bridge-{component}"]["spec"]["template"]
    ports = {p["name"]: p for p in template["spec"]["containers"][0]["ports"]}
    listen = Settings().server.listen

    assert service["selector"].items() <= template["metadata"]["labels"].items()
    assert f"0.0.0.0:{ports[service['ports'][0]['targetPort']]['containerPort']}" == listen
    assert f"0.0.0.0:{ports['health']['containerPort']}" == Settings().health.listen


@pytest.fixture
def loaded(chart: Rendered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The rendered file as the programs read it."""
    for variable in [v for v in os.environ if v.startswith(ENV_PREFIX)]:
        monkeypatch.delenv(variable)
    file = tmp_path / "config.yaml"
    file.write_text(chart.config("slurm-bridge-config", "config.yaml"))
    return Sources(program="webhook", config=file, secrets_dir=None).read()


def test_programs_take_the_rendered_configuration(loaded: Settings) -> None:
    assert loaded.kubernetes.namespace == "slurm-bridge"
    assert loaded.extender.client_ca_file == "/etc/slurm-bridge/tls/ca.crt"
    assert Settings().placement == loaded.placement


@pytest.mark.parametrize("component", PROGRAMS)
def test_program_finds_its_files(chart: Rendered, loaded: Settings, component: str) -> None:
    spec = pod_spec(chart, component)
    folders = mounts(spec)
    program, flag, config_file, *_ = spec["containers"][0]["args"]
    files = {
        "webhook": [loaded.server.cert_file, loaded.server.key_file],
        "extender": [
            loaded.server.cert_file,
            loaded.server.key_file,
            loaded.extender.client_ca_file,
            loaded.slurm.token_file,
        ],
        "controllers": [loaded.slurm.token_file],
    }[component]

    assert (component, "--config") == (program, flag)
    assert {str(Path(file).parent) for file in [config_file, *files]} == set(folders)
    assert Path(config_file).name in chart.of_kind("ConfigMap")["slurm-bridge-config"]["data"]


def test_token_file_is_the_secrets_key(render: Render) -> None:
    chart = render({"slurmToken": {"existingSecret": "jwt", "key": "auth"}})

    volume = mounts(pod_spec(chart, "extender"))["/etc/slurm-bridge/slurm"]

    assert volume["secret"]["secretName"] == "jwt"
    assert volume["secret"]["items"] == [{"key": "auth", "path": "token"}]


def checksum(chart: Rendered, component: str) -> str:
    deployment: Manifest = chart.of_kind("Deployment")[f"slurm-bridge-{component}"]
    value: str = deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
    return value


@pytest.mark.parametrize(
    ("values", "restarted"),
    [
        pytest.param({"config": {"slurm": {"partition": "gpu"}}}, set(PROGRAMS), id="settings"),
        pytest.param({"scheduler": {"leaderElect": False}}, {"scheduler"}, id="profile"),
        pytest.param({"webhook": {"replicas": 3}}, set(), id="neither"),
    ],
)
def test_changed_configuration_restarts_its_readers(
    render: Render, chart: Rendered, values: dict[str, Any], restarted: set[str]
) -> None:
    changed = render(values)

    assert restarted == {c for c in DEPLOYMENTS if checksum(chart, c) != checksum(changed, c)}


def test_scheduler_asks_us_and_nobody_else(chart: Rendered) -> None:
    profile = yaml.safe_load(chart.config("slurm-bridge-scheduler", "scheduler.yaml"))
    (extender,) = profile["extenders"]

    assert [p["schedulerName"] for p in profile["profiles"]] == [names.SCHEDULER_NAME]
    assert extender["urlPrefix"] == "https://slurm-bridge-extender.slurm-bridge.svc/v1"
    assert extender["ignorable"] is False
    assert (
        chart.config("slurm-bridge-scheduler", "feature-gates") == "SchedulerPopFromBackoffQ=false"
    )
    assert (
        "--feature-gates=SchedulerPopFromBackoffQ=false"
        in pod_spec(chart, "scheduler")["containers"][0]["args"]
    )


@pytest.mark.parametrize("calls", ["one", "two"])
def test_webhook_is_asked_at_create_in_selected_namespaces_only(render: Render, calls: str) -> None:
    chart = render({"admission": {"calls": calls}})
    hooks = [hook for hook in hooks_of(chart) if hook["name"] != "keep.slurm-bridge.dev"]

    asked = [
        (hook["clientConfig"]["service"]["path"], hook.get("reinvocationPolicy")) for hook in hooks
    ]
    in_two: list[tuple[str, str | None]] = [("/mutate", None), ("/validate", None)]
    assert asked == ([("/admit", "IfNeeded")] if calls == "one" else in_two)
    for webhook in hooks:
        check_when_it_is_asked(webhook)


@pytest.mark.parametrize("by", ["webhook", "policy"])
def test_no_update_waits_for_the_webhook_but_those_that_would_be_refused(
    render: Render, by: str
) -> None:
    chart = render({"admission": {"mutate": by}}, kube_version="1.36.0")
    (keeps,) = [hook for hook in hooks_of(chart) if hook["rules"][0]["operations"] != ["CREATE"]]

    assert ("/keep", "Ignore") == (
        keeps["clientConfig"]["service"]["path"],
        keeps["failurePolicy"],
    )
    assert [("UPDATE", "pods")] == [
        (*rule["operations"], *rule["resources"]) for rule in keeps["rules"]
    ]
    assert {"matchLabels": {names.BRIDGED_LABEL: "true"}} == keeps["objectSelector"]
    assert names.ENABLED_LABEL in keeps["namespaceSelector"]["matchLabels"]
    assert 1 == len(keeps["matchConditions"])


def hooks_of(chart: Rendered) -> list[Manifest]:
    return [
        webhook
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        for configuration in chart.of_kind(kind).values()
        for webhook in configuration["webhooks"]
    ]


def check_when_it_is_asked(webhook: Manifest) -> None:
    assert webhook["rules"] == [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
            "scope": "Namespaced",
        }
    ]
    assert webhook["namespaceSelector"] == {
        "matchLabels": {names.ENABLED_LABEL: "true"},
        "matchExpressions": [
            {
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": ["kube-system", "slurm-bridge"],
            }
        ],
    }
    assert webhook["failurePolicy"] == "Fail"
    assert webhook["timeoutSeconds"] == 5


def test_policies_speak_of_the_keys_of_the_domain(chart: Rendered) -> None:
    policies = chart.of_kind("ValidatingAdmissionPolicy")

    for policy, keys in {
        "keys": (names.GATE, names.FINALIZER, *names.FROZEN_PREFIXES),
        "bypass": (
            names.GATE,
            names.FINALIZER,
            names.JOB_ID_LABEL,
            names.NODE_ANNOTATION,
            names.SLUID_ANNOTATION,
            names.GRANT_ANNOTATION,
            names.WHEN_LOST_ANNOTATION,
            names.REQUESTER_ANNOTATION,
            names.OWNER_ANNOTATION,
        ),
        "elsewhere": (names.GATE, names.FINALIZER, names.ENABLED_LABEL),
        "taint": (names.MANAGED_NODE_TAINT,),
        "nodes": (names.EXTERNAL_NODE_LABEL, names.HYBRID_NODE_LABEL),
    }.items():
        expressions = json.dumps(policies[f"slurm-bridge-{policy}"]["spec"])
        assert [f"'{key}'" in expressions for key in keys] == [True] * len(keys)


def test_openshifts_restricted_v2_admits_our_pods(render: Render) -> None:
    """Its rules that the Pod Security standard does not have, `oc describe scc restricted-v2`: it gives user and groups itself."""
    chart = render(VALUES["openshift"])

    for component in DEPLOYMENTS:
        spec = pod_spec(chart, component)
        assert {"runAsNonRoot", "seccompProfile"} == set(spec["securityContext"])
        assert {"RuntimeDefault"} == set(spec["securityContext"]["seccompProfile"].values())
        for container in spec["containers"]:
            assert not container["securityContext"].keys() & {"runAsUser", "runAsGroup"}
            assert not [port for port in container.get("ports", []) if "hostPort" in port]
        allowed = {"configMap", "downwardAPI", "emptyDir", "projected", "secret"}
        assert {key for volume in spec["volumes"] for key in volume} <= {"name", *allowed}


def test_keys_of_ours_are_frozen() -> None:
    ours = (
        names.JOB_ID_LABEL,
        names.NODE_ANNOTATION,
        names.REQUEST_PREFIX,
        names.ENABLED_LABEL,
        names.REQUESTER_ANNOTATION,
        names.RULES_ANNOTATION,
        names.OWNER_ANNOTATION,
    )

    assert all(key.startswith(names.FROZEN_PREFIXES) for key in ours)


def test_no_taint_no_taint_policy(render: Render) -> None:
    chart = render({"config": {"controllers": {"taint_effect": ""}}})

    assert "slurm-bridge-taint" not in chart.of_kind("ValidatingAdmissionPolicy")


def test_without_workloads_there_is_nothing_that_runs(render: Render, chart: Rendered) -> None:
    outside = render(OUTSIDE)
    kinds = {m["kind"] for m in outside.manifests}

    assert {"Deployment", "PodDisruptionBudget", "Secret", "Service"} == (
        {m["kind"] for m in chart.manifests} - kinds
    )
    for component in ("extender", "controllers"):
        name = f"slurm-bridge-{component}"
        assert rights(chart, "ClusterRole", name) - OWN_WEBHOOKS == rights(
            outside, "ClusterRole", name
        )
    assert chart.of_kind("ValidatingAdmissionPolicy") == outside.of_kind(
        "ValidatingAdmissionPolicy"
    )


def test_without_workloads_everybody_is_called_by_url(render: Render) -> None:
    outside = render(OUTSIDE)
    profile = yaml.safe_load(outside.config("slurm-bridge-scheduler", "scheduler.yaml"))
    configuration = outside.of_kind("MutatingWebhookConfiguration")["slurm-bridge"]

    assert (configuration["webhooks"][0]["clientConfig"]) == {
        "url": "https://127.0.0.1:31001/mutate",
        "caBundle": "UEVN",
    }
    assert profile["extenders"][0]["urlPrefix"] == "https://127.0.0.1:31002/v1"
    assert profile["extenders"][0]["tlsConfig"] == {
        "caFile": "/run/tls/ca.crt",
        "certFile": "/run/tls/tls.crt",
        "keyFile": "/run/tls/tls.key",
    }
    assert profile["clientConnection"]["kubeconfig"] == "/run/scheduler.kubeconfig"


def test_another_release_shares_no_cluster_object(render: Render, chart: Rendered) -> None:
    other = render(release="second", namespace="elsewhere")

    def cluster_objects(rendered: Rendered) -> set[tuple[str, str]]:
        return {
            (m["kind"], m["metadata"]["name"])
            for m in rendered.manifests
            if "namespace" not in m["metadata"]
        }

    assert set() == cluster_objects(chart) & cluster_objects(other)
