"""Domain values → slurmrestd's JSON, node_conf and the completion message."""

import struct
from datetime import UTC, datetime
from typing import Any

import pytest

from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model import identities
from bridge.slurm import complete, encode
from slurmclient.errors import Malformed
from slurmruntime.model.nodes import SlurmNodeSpec
from slurmruntime.values.ids import JobId, Sluid, SlurmNode
from tests.slurm.placeholders import USER, identity, spec


def job(**changes: Any) -> dict[str, object]:
    written = encode.submission(spec(**changes))["job"]
    assert isinstance(written, dict)
    return written


def test_the_least_submission_says_nothing_it_does_not_mean() -> None:
    whose = identity()

    expected = {
        "flags": ["EXTERNAL_JOB"],
        "name": "train",
        "admin_comment": identities.encode(whose),
        "user_id": USER,
        "group_id": USER,
        "current_working_directory": "/",
        "minimum_nodes": 1,
        "maximum_nodes": 1,
        "tasks": 1,
        "cpus_per_task": 1,
        "memory_per_node": {"set": True, "infinite": False, "number": 100},
        "time_limit": {"set": True, "infinite": False, "number": 60},
    }
    assert {"job": expected} == encode.submission(spec(whose))


def test_zeros_are_said_where_they_mean_something() -> None:
    written = job(nice=0, priority=0, time_limit_min=None)

    assert 0 == written["nice"]
    assert {"set": True, "infinite": False, "number": 0} == written["priority"]
    assert "time_limit" not in written


def test_moments_are_seconds_rounded_up_and_lists_are_lists() -> None:
    written = job(
        begin_at=datetime(2026, 12, 24, 18, 0, 0, 1, tzinfo=UTC),
        deadline_at=datetime(2026, 12, 25, tzinfo=UTC),
        required_nodes=(SlurmNode("n1"), SlurmNode("n2")),
        exclusive=True,
    )

    assert {"set": True, "infinite": False, "number": 1_798_135_201} == written["begin_time"]
    assert 1_798_156_800 == written["deadline"]
    assert (["n1", "n2"], ["none"]) == (written["required_nodes"], written["shared"])


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        ("2", {"required_switches": 2}),
        ("1@60", {"required_switches": 1, "wait_for_switch": 3600}),
        ("1@1-00:00", {"required_switches": 1, "wait_for_switch": 86400}),
    ],
)
def test_switches_are_a_count_and_seconds(switches: str, expected: dict[str, int]) -> None:
    assert expected.items() <= job(switches=switches).items()


NODE = SlurmNodeSpec(
    name=SlurmNode("worker-2.example"),
    address="10.0.0.5",
    cpus=16,
    memory_mib=64000,
    features=("slurm-bridge", "topology.kubernetes.io/zone=eu-1a"),
    gres="gpu:a100:2",
    gres_conf="count=2,name=gpu,type=a100,file=gpu-0,file=gpu-1",
    topology="topo-switch:s1",
)


def test_a_node_is_one_socket_with_an_address() -> None:
    assert (
        "NodeName=worker-2.example State=External NodeAddr=10.0.0.5 Sockets=1 CoresPerSocket=16 ThreadsPerCore=1 CPUs=16 "
        "RealMemory=64000 Feature=slurm-bridge,topology.kubernetes.io/zone=eu-1a Gres=gpu:a100:2 "
        "GresConf=count=2,name=gpu,type=a100,file=gpu-0,file=gpu-1 Topology=topo-switch:s1 Weight=1"
    ) == encode.node_conf(NODE)


@pytest.mark.parametrize("address", ["10.0.0.5 State=FUTURE", '"10.0.0.5"', "10.0.0.5\n"])
def test_a_value_cannot_smuggle_another_key_into_node_conf(address: str) -> None:
    smuggling = SlurmNodeSpec(name=SlurmNode("n"), address=address, cpus=1, memory_mib=1)

    with pytest.raises(ValueError, match="NodeAddr of Slurm node n"):
        encode.node_conf(smuggling)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome(), 0),
        (Outcome(exit_code=3), 3 << 8),
        (Outcome(exit_code=255), 255 << 8),
        (Outcome(exit_code=256), 255 << 8),
        (Outcome(exit_code=-1), 255 << 8),
        (Outcome(signal=9), 9),
        (Outcome(signal=127), 255 << 8),
        (Outcome(out_of_memory=True), 253),
    ],
)
def test_an_outcome_is_a_wait_status_and_failure_never_turns_into_success(
    outcome: Outcome, status: int
) -> None:
    assert status == complete.wait_status(outcome)


@pytest.mark.parametrize(
    ("release", "protocol"),
    [((25, 5), 43), ((25, 11), 44), ((26, 5), 45), ((26, 11), 45), ((24, 11), 43)],
)
def test_the_protocol_is_the_newest_both_speak(release: tuple[int, int], protocol: int) -> None:
    assert protocol == complete.protocol_for(release)


def test_the_completion_message_names_the_job_by_its_sluid_since_25_11() -> None:
    sluid = Sluid("sAVSM7YPWFKK00")
    message = complete.message(45, "ab", JobId(7), Outcome(exit_code=3), sluid)

    token = struct.pack("!II3sI", 102, 3, b"ab\0", 0)
    body = struct.pack("!QIIII", complete.sluid_number(sluid), 7, 0xFFFFFFFE, 0xFFFFFFFE, 3 << 8)
    head = struct.pack("!HHHIHHH", 45 << 8, 0, 5017, len(body), 0, 0, 0)
    assert struct.pack("!I", len(head + token + body)) + head + token + body == message


def test_the_completion_message_of_25_05_has_the_job_id_alone() -> None:
    message = complete.message(43, "ab", JobId(7), Outcome(), Sluid("sAVSM7YPWFKK00"))

    assert message.endswith(struct.pack("!II", 7, 0))


def test_a_sluid_is_64_bits_in_base_32() -> None:
    assert (0, 31, 32, 2**64 - 1) == tuple(
        complete.sluid_number(Sluid(text))
        for text in ("s0000000000000", "s000000000000Z", "s0000000000010", "sFZZZZZZZZZZZZ")
    )


@pytest.mark.parametrize(
    "text", ["", "s", "4711", "s000000000000U", "t0000000000000", "sG000000000000"]
)
def test_what_is_no_sluid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a sluid"):
        complete.sluid_number(Sluid(text))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another protocol"),
        pytest.param(struct.pack("!HHHI", 45 << 8, 0, 8002, 0), id="another message"),
    ],
)
def test_what_is_no_return_code_is_malformed(content: bytes) -> None:
    with pytest.raises(Malformed):
        complete.return_code(content)
