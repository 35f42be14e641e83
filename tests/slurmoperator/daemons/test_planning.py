"""What an object of the control plane gets, whatever has been read: arbitrary and contradictory facts included."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmoperator.configuration import lines
from slurmoperator.configuration.partitions import (
    NOT_READ,
    JobsOfPartition,
    PartitionReading,
    SlurmPartitions,
)
from slurmoperator.configuration.rendering import ConfigurationSet, FilesInForce
from slurmoperator.daemons import planning
from slurmoperator.daemons.rest_tls import TlsFacts
from slurmoperator.daemons.situation import (
    AccountingFacts,
    ControllerFacts,
    DaemonFacts,
    LoginSetFacts,
    PendingVerdict,
    RestApiFacts,
    TokenFacts,
    TrialPod,
)
from slurmoperator.keys import rings
from slurmoperator.keys.certificates import CertificateBundle
from slurmoperator.keys.rotation import KeyHolder, KeyRing, RotationFacts
from slurmoperator.keys.secrets import DataObject
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.objects.parts import KeyOfObject
from slurmoperator.objects.pod_status import ContainerStatus, PodStatus
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.objects.token import TokenObject
from slurmoperator.rendering.site import ControlSite, SlurmImages
from slurmoperator.rendering.trying import LOG_PREFIX, WRITE_FILE
from slurmruntime.crd.restapis import TLS_ANNOTATION, TLS_OFF, TLS_SECRET_ANNOTATION
from slurmruntime.values.faults import Fault
from tests.slurmoperator.configuration.given import accounting, controller, node_set
from tests.slurmoperator.daemons.peers import part

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SITE = ControlSite(
    images=SlurmImages(slurmctld="", slurmd="", slurmdbd="", slurmrestd="", login="")
)
KEY = KeyOfObject(name="site-auth-slurm", key="slurm.key")
AWAY = {"external": True, "externalConfig": {"host": "slurm.example.org", "port": 6817}}

times = st.integers(-(10**6), 10**6).map(lambda seconds: NOW + timedelta(seconds=seconds))
words = st.sampled_from(["", "a", "é", "\x00", "PartitionName=", "x" * 50])
confs = st.sampled_from(
    [
        "",
        "PartitionName=a Nodes=ALL\n",
        "PartitionName=a Nodes=ALL\nPartitionName=b Nodes=ALL\n",
        "PartitionName=b Nodes=ALL\nSelectType=select/linear\n",
        "SwitchType=switch/nvidia_imex\n",
        "SlurmctldHost=elsewhere\n",
        "not a line\n",
        "MinJobAge=60\n",
    ]
)
controllers = st.builds(
    lambda conf, more: controller(extraConf=conf, **more),
    confs,
    st.sampled_from([{}, AWAY, {"slurmKeyRef": ...}, {"accountingRef": {"name": "site"}}]),
)
accountings = st.sampled_from([accounting(), accounting(**AWAY), accounting(extraConf="a b c")])
node_sets = st.lists(
    st.builds(
        lambda name, conf, replicas: node_set(name, extraConf=conf, replicas=replicas),
        st.sampled_from(["cpu", "cpu-1", "gpu"]),
        st.sampled_from(["", "Weight=3", "Nonsense=1", "Gres=gpu:2"]),
        st.integers(0, 2),
    ),
    max_size=3,
).map(tuple)
data = st.dictionaries(
    st.sampled_from(["slurm.key", "jwt.key", "password", "SLURM_JWT", "sssd.conf", "tls.crt"]),
    st.one_of(words, st.binary(max_size=80).map(lambda raw: base64.b64encode(raw).decode())),
)
maybe_data = st.none() | data
key_rings = st.none() | st.builds(
    KeyRing,
    key=st.just(KEY),
    steps=st.dictionaries(
        st.sampled_from(["slurm.key.1.jwks", "slurm.key.2.jwks", "slurm.key.x.jwks", "a"]),
        st.binary(max_size=40) | st.just(rings.step_text(1, {1: b"k" * 16, 2: b"l" * 16})),
    ),
    version=st.sampled_from(["", "1"]),
    reported=st.integers(0, 4),
)
rotations = st.none() | st.builds(
    RotationFacts,
    step=st.integers(0, 4),
    wanted=st.none() | st.integers(1, 4),
    bad_request=words,
    elsewhere=st.sampled_from([(), ("Accounting a",)]),
    holders=st.lists(
        st.builds(KeyHolder, name=words, step=st.none() | st.integers(0, 4)), max_size=3
    ).map(tuple),
    unwritable=words,
)


@st.composite
def files_of(draw: st.DrawFn) -> dict[str, str]:
    """Files that were written once, perhaps by another release, and perhaps damaged."""
    stored = {"slurm.conf": draw(confs | words)}
    if draw(st.booleans()):
        stored[WRITE_FILE] = draw(st.sampled_from(["", "-", "2026-01-01T00:00:00+00:00"]))
    return stored


def written(stored: Mapping[str, str]) -> ConfigurationSet:
    files = {name: text for name, text in stored.items() if name != WRITE_FILE}
    write = stored.get(WRITE_FILE, "-")
    return ConfigurationSet(files=files, write=write)


in_forces = st.none() | st.builds(
    lambda stored, proven: FilesInForce.stored(
        {name: text for name, text in stored.items() if name != WRITE_FILE},
        written(stored).tag if proven else "",
    ),
    files_of(),
    st.booleans(),
)
ids = st.lists(st.sampled_from(["7", "8"]), unique=True).map(tuple)
readings = st.builds(
    PartitionReading,
    names=st.frozensets(st.sampled_from(["a", "b", "c"])),
    seen=st.just(NOT_READ)
    | st.builds(
        SlurmPartitions,
        trouble=st.sampled_from(["", "no answer"]),
        is_sure=st.booleans(),
        states=st.none()
        | st.dictionaries(
            st.sampled_from(["a", "b"]), st.sampled_from(["UP", "DOWN", "INACTIVE", "?"])
        ),
        jobs=st.none()
        | st.dictionaries(
            st.sampled_from(["a", "b"]),
            st.builds(JobsOfPartition, running=ids, waiting=ids),
        ),
        live=st.integers(0, 2),
        open_nodes=st.integers(0, 2),
    ),
)


@st.composite
def pods_of(draw: st.DrawFn, tags: st.SearchStrategy[str]) -> tuple[TrialPod, ...]:
    verdict = st.builds(
        lambda word, tag, text: f"{LOG_PREFIX} {word} {tag} {text}",
        st.sampled_from(["taken", "refused", "unfit", "judged", "?"]),
        tags,
        words,
    )
    logs = st.lists(verdict | words, max_size=4).map("\n".join)
    status = st.builds(
        lambda name, last_words, running: PodStatus(
            init_container_statuses=(
                msgspec.convert(
                    {
                        "name": name,
                        "state": {"running": {}} if running else {},
                        "lastState": {"terminated": {"message": last_words}},
                    },
                    ContainerStatus,
                ),
            )
        ),
        st.sampled_from(["reconfigure", "configuration", "other"]),
        logs,
        st.booleans(),
    )
    pod = st.builds(TrialPod, name=words, status=status, log=logs, trouble=words)
    return tuple(draw(st.lists(pod, max_size=2)))


@st.composite
def of_controllers(draw: st.DrawFn) -> ControllerFacts:
    last = draw(st.none() | files_of().map(written))
    tags = st.sampled_from([(last or written({})).tag, f"{'0' * 64} -"])
    awaited = st.none() | st.builds(PendingVerdict, tags, times, st.integers(0, 5))
    return ControllerFacts(
        part=draw(controllers),
        site=SITE,
        now=draw(times),
        accounting=draw(st.none() | accountings),
        node_sets=draw(node_sets),
        unreadable=draw(st.just(()) | st.just((Fault("NodeSet x", "bad"),))),
        config_maps=draw(st.dictionaries(words, data, max_size=2)),
        ring=draw(key_rings),
        rotation=draw(rotations),
        used_secrets=draw(st.frozensets(st.sampled_from([KEY.name, "other"]))),
        in_force=draw(in_forces),
        last=last,
        partitions=draw(readings),
        pods=draw(pods_of(tags)),
        awaited=draw(awaited),
        awaited_nodes=draw(awaited),
    )


of_accountings = st.builds(
    AccountingFacts,
    part=accountings,
    site=st.just(SITE),
    now=times,
    ring=key_rings,
    password=maybe_data,
    in_force=in_forces,
    pods=pods_of(st.just(f"{'0' * 64} -")),
    awaited=st.none() | st.builds(PendingVerdict, words, times),
)
objects = st.builds(DataObject, data=maybe_data)


def rest_api(**annotations: str) -> RestApiObject:
    made = part("RestApi")
    made["metadata"]["annotations"] = annotations
    return msgspec.convert(made, RestApiObject)


of_rest_apis = st.builds(
    RestApiFacts,
    part=st.sampled_from(
        [
            rest_api(),
            rest_api(**{TLS_ANNOTATION: TLS_OFF}),
            rest_api(**{TLS_SECRET_ANNOTATION: "a"}),
        ]
    ),
    site=st.just(SITE),
    now=times,
    controller=st.none() | controllers,
    in_force=in_forces,
    tls=st.none()
    | st.builds(
        TlsFacts,
        authorities_name=words,
        stored=st.none() | objects,
        signed=st.none() | st.just(CertificateBundle(authorities={}, trusted=b"a", files={})),
        users=st.none() | objects,
    ),
    ring=key_rings,
)
of_login_sets = st.builds(
    LoginSetFacts,
    part=st.just(msgspec.convert(part("LoginSet"), LoginSetObject)),
    site=st.just(SITE),
    now=times,
    controller=st.none() | controllers,
    sssd_conf=maybe_data,
    ring=key_rings,
)
of_tokens = st.builds(
    TokenFacts,
    part=st.sampled_from(
        [
            msgspec.convert(part("Token"), TokenObject),
            msgspec.convert(part("Token", username="root", lifetime="1s"), TokenObject),
            msgspec.convert(part("Token", jwtKeyRef=...), TokenObject),
        ]
    ),
    now=times,
    policy=st.sampled_from(
        [TokenPolicy(users={}, longest_s=0), TokenPolicy(users={"*": "alice"}, longest_s=86_400)]
    ),
    signing=maybe_data,
    current=maybe_data,
)
all_facts = st.one_of(of_controllers(), of_accountings, of_rest_apis, of_login_sets, of_tokens)


@settings(deadline=None)
@given(all_facts)
def test_whatever_was_read_there_is_a_plan_and_nothing_goes_on_doubt(facts: DaemonFacts) -> None:
    plan = planning.plan(facts)

    assert plan == planning.plan(facts)
    if plan.refused or plan.configured:
        assert not plan.unwanted
    assert plan.is_blocked is bool(plan.refused or (plan.configured and not plan.bodies))
    if plan.is_blocked:
        assert not plan.unwanted
    wanted = {(body["kind"], body["metadata"]["name"]) for body in plan.bodies}
    assert not wanted & {(body["kind"], body["metadata"]["name"]) for body in plan.unwanted}
    assert not {"PersistentVolumeClaim"} & {body["kind"] for body in plan.unwanted}
    assert repr(plan)


@settings(deadline=None)
@given(of_controllers())
def test_a_partition_goes_only_when_slurm_surely_has_no_job_in_it(facts: ControllerFacts) -> None:
    plan = planning.plan(facts)
    if facts.part.spec.external or facts.in_force is None or not plan.bodies:
        return
    before = _partitions(facts.in_force.files.files["slurm.conf"])
    seen = facts.partitions.seen
    for body in plan.bodies:
        if "slurm.conf" in (body.get("data") or {}):
            for gone in before - _partitions(body["data"]["slurm.conf"]) - {"DEFAULT", ""}:
                assert seen.is_sure
                assert not seen.trouble
                assert not (seen.jobs or {}).get(gone, JobsOfPartition()).running
                assert not (seen.jobs or {}).get(gone, JobsOfPartition()).waiting


@settings(deadline=None)
@given(of_controllers())
def test_a_configuration_is_in_force_only_once_a_slurmctld_has_served_with_it(
    facts: ControllerFacts,
) -> None:
    plan = planning.plan(facts)
    was_seen = any("taken" in pod.log for pod in facts.pods) or (
        facts.in_force is not None and facts.in_force.is_proven
    )
    if plan.verdict and plan.verdict.digest and not facts.part.spec.external:
        assert was_seen


@settings(deadline=None)
@given(of_controllers())
def test_a_key_goes_on_only_once_everybody_known_has_the_step_before(
    facts: ControllerFacts,
) -> None:
    plan = planning.plan(facts)
    if plan.rotation is None or plan.rotation.writes is None:
        return
    rotation = facts.rotation
    assert rotation is not None
    assert not plan.refused
    assert not rotation.elsewhere
    assert not rotation.unwritable
    assert {rotation.step} >= {holder.step for holder in rotation.holders}
    assert rotation.step + 1 == plan.rotation.writes


@pytest.mark.parametrize("text", [repr, str])
def test_facts_show_no_secret(text: Any) -> None:
    facts = TokenFacts(
        part=msgspec.convert(part("Token"), TokenObject),
        now=NOW,
        policy=TokenPolicy(users={}, longest_s=1),
        signing={"jwt.key": "c2VjcmV0"},
        current={"SLURM_JWT": "c2VjcmV0"},
    )
    assert "c2VjcmV0" not in text(facts)


def _partitions(conf: str) -> set[str]:
    return {
        line.settings[0].value
        for line in lines.read(conf)
        if line.settings and line.settings[0].key == "PartitionName"
    }


def test_a_nodeset_whose_names_clash_costs_no_other_one_its_configuration() -> None:
    sets = [
        msgspec.structs.replace(
            made,
            metadata=msgspec.structs.replace(
                made.metadata, uid=made.metadata.name, creation_timestamp=NOW + timedelta(days=age)
            ),
        )
        for age, made in enumerate(
            [node_set("cpu", hostname="cpu-"), node_set("b", hostname="cpu-1")]
        )
    ]
    plan = planning.plan(
        ControllerFacts(part=controller(), site=SITE, now=NOW, node_sets=tuple(sets))
    )

    assert ("", "") == (plan.refused, plan.configured)
    (conf,) = (
        body["data"]["slurm.conf"]
        for body in plan.bodies
        if body["metadata"]["name"] == "site-config"
    )
    assert "NodeSet=cpu " in conf
    assert "NodeSet=b " not in conf
