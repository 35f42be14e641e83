"""Everything that reads what others write: 10 000 inputs each, and no error but those it promises.

Inputs are made of the pieces that each form is made of, or are good ones with a part replaced: pure noise never gets far.
"""

import asyncio
import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typing_extensions import override

from bridge.domain import hostlist, names, quantities
from bridge.domain.ids import ClusterId, JobId, PodUid, SlurmNode, WorkloadKey
from bridge.domain.model import grant, identities
from bridge.domain.model.identities import Frozen, Identity, UnreadableIdentityError
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.request import overrides, rules
from bridge.process import policy_file as runtime_policy
from bridge.settings import sources
from bridge.settings.schema import ENV_PREFIX, Settings
from bridge.slurm import jobs, nodes
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import SlurmError
from bridge.slurm.transport import Reply, Transport

INPUTS = 10_000
AT_ONCE = 10

fuzzed = settings(
    max_examples=INPUTS // AT_ONCE,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

ODD = (
    *(
        "",
        " ",
        "\n",
        "\x00",
        "\x7f",
        "ü",
        "٣",
        "²",
        "\u200b",
        "\ud7ff",
        "😀",
        "-0",
        "null",
        "1e999",
    ),
    *(
        "1" * 5000,
        "9" * 30,
        "{" * 2000,
        "[" * 2000,
        "\\",
        "\\u0000",
        "'",
        '"',
        ";",
        "$",
        "`",
        "%s",
        "../",
    ),
)

_JSON_VALUES: tuple[Any, ...] = (
    *(None, True, False, [], {}, "", "x", "x" * 3000, [[]], {"set": True}, ["x"], [None]),
    *(
        0,
        -1,
        1,
        7,
        2**31,
        2**63,
        -(2**63),
        10**30,
        0.5,
        1e300,
        -1e300,
        "7",
        "7_1",
        "\ud7ff",
        "node[1-9999999]",
    ),
)


def batches(longest: int) -> st.SearchStrategy[list[bytes]]:
    """Several inputs at once: most of the time goes into drawing, and that is done once for all of them."""
    size = longest + 1
    return st.binary(min_size=AT_ONCE * size, max_size=AT_ONCE * size).map(
        lambda data: [
            data[start + 1 : start + 1 + data[start] % size] for start in range(0, len(data), size)
        ]
    )


def _joined(data: bytes, known: tuple[str, ...]) -> str:
    """A byte is a piece: cheap to draw, and it shrinks well."""
    choices = (*known, *known, *ODD)
    return "".join(choices[byte % len(choices)] for byte in data)


def _spoilt(good: Any, data: bytes) -> Any:
    """In a good document one to six parts are something else, or gone: two bytes say where and what."""
    values = len(_JSON_VALUES)
    changes = [
        (where, _JSON_VALUES[what % values], what >= 8 * values)
        for where, what in zip(data[::2], data[1::2], strict=False)
    ]
    return _spoil(good, changes)


def _spoil(good: Any, changes: list[tuple[int, Any, bool]]) -> Any:
    document = json.loads(json.dumps(good))
    for number, value, is_gone in changes:
        places = list(_places(document))
        if places:
            holder, key = places[number % len(places)]
            if is_gone:
                del holder[key]
            else:
                holder[key] = copy.deepcopy(value)
    return document


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of it, as who holds it under which key."""
    keys = (
        list(document)
        if isinstance(document, dict)
        else range(len(document))
        if isinstance(document, list)
        else ()
    )
    for key in keys:
        yield document, key
        yield from _places(document[key])


# -- what users write -----------------------------------------------------------------------------

_FIELDS = [*(field.name for field in overrides.FIELDS), *overrides.REFUSED, "nonsense", ""]
_VALUES = (
    *(field.example for field in overrides.FIELDS),
    *"0123456789:-@,|&.+TZ?",
    *("gres/", "gpu", "Mi", "singleton"),
)


@fuzzed
@given(batches(20))
def test_annotations(batch: list[bytes]) -> None:
    """Five bytes are a field: its name, and what its value is made of."""
    for data in batch:
        asked = {
            _FIELDS[data[start] % len(_FIELDS)]: _joined(data[start + 1 : start + 5], _VALUES)
            for start in range(0, len(data), 5)
        }
        found, faults = overrides.parse(
            {f"{names.REQUEST_PREFIX}{name}": value for name, value in asked.items()}
        )
        taken = [name for name in found.__slots__ if getattr(found, name) is not None]
        assert len(taken) + len(faults) == len(asked)
        assert all(len(fault.text) < 2000 for fault in faults)


_QUANTITIES = (*"0123456789.+-eE", "Ki", "Mi", "Ei", "m", "n", "k", "e9")


@fuzzed
@given(batches(8))
def test_quantities(batch: list[bytes]) -> None:
    for data in batch:
        try:
            amount = quantities.parse(_joined(data, _QUANTITIES))
        except ValueError:
            continue
        assert amount.is_finite()
        assert quantities.whole(amount) <= 2**63


_HOSTLISTS = (*"0123456789[],-", "node", "gpu[1-3]", "[001-999999999]")


@fuzzed
@given(batches(10))
def test_hostlists(batch: list[bytes]) -> None:
    for data in batch:
        try:
            found = hostlist.expand(_joined(data, _HOSTLISTS))
        except ValueError:
            continue
        assert len(found) <= hostlist.MAX_NAMES
        assert found == hostlist.expand(hostlist.compress(found))


# -- what stands in Slurm and on pods -------------------------------------------------------------

_IDENTITY = Identity(
    cluster=ClusterId("c"),
    kind="Pod",
    namespace="n",
    name="p",
    key=WorkloadKey("u"),
    pods=(PodUid("u"),),
    cause="misfit",
    limit_min=1,
    extended_min=2,
    frozen=Frozen(requester="alice", rule="r", user="alice", account="a", asked={"timelimit": "5"}),
)
_COMMENT = json.loads(identities.encode(_IDENTITY))
_COMMENTS = ('"slurm-bridge"', '{"slurm-bridge":1,', '"cluster":', '"pods":[]', *'{}[]",:1')


def _document(good: Any, data: bytes, known: tuple[str, ...]) -> str:
    """Three times of four a spoilt one, else text of its pieces."""
    if data and data[0] % 4:
        return json.dumps(_spoilt(good, data[1:]))
    return _joined(data[1:], known)


@fuzzed
@given(batches(9))
def test_admin_comments(batch: list[bytes]) -> None:
    for data in batch:
        try:
            found = identities.decode(_document(_COMMENT, data, _COMMENTS))
        except UnreadableIdentityError:
            continue
        assert found is None or found == identities.decode(identities.encode(found))


_GRANT = json.loads(
    grant.encode(
        _IDENTITY,
        grant.Grant(
            name="x", user="u", group="g", memory_mib_per_node=1, started_s=7, time_limit_min=5
        ),
    )
)


@fuzzed
@given(batches(9))
def test_grants(batch: list[bytes]) -> None:
    for data in batch:
        found = grant.decode(_document(_GRANT, data, ('{"identity":', '"grant":', *'{}[]",:1')))
        again = None if found is None else grant.decode(grant.encode(*found))
        assert (found and found[1]) == (again and again[1])


# -- what administrators write --------------------------------------------------------------------

_SETTINGS = {
    "policy": {
        "creator_annotation": "a/b",
        "rules": [
            {
                "name": "a",
                "match": {
                    "namespaces": ["x*"],
                    "namespace_labels": {"k": "v"},
                    "users": ["u"],
                    "service_accounts": ["a/b"],
                },
                "user": "{namespace}",
                "user_table": {"x": "y"},
                "account": {"default": "{slurm_user}", "allowed": ["a?"]},
                "partition": {"default": "p", "allowed": ["q"]},
                "nice": {"min": -1, "max": 1},
                "time_limit_max_min": 5,
                "exclusive": False,
                "licenses": [],
            },
            {"name": "b", "user": "root"},
        ],
    },
    "slurm": {"user": "u", "group": "g"},
}


@pytest.fixture(scope="module")
def settings_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings") / "config.yaml"


_YAML = (
    *("policy:", " {rules: [", "name: a", "user: u", "\n", "  ", "- ", "}]"),
    *("&a", "*a", "!!python", "? ", "|", "0x", "2026-13-32"),
)


@fuzzed
@given(batches(9))
def test_policy_files(settings_file: Path, batch: list[bytes]) -> None:
    for data in batch:
        settings_file.write_text(_document(_SETTINGS, data, _YAML), encoding="utf-8")
        try:
            read = sources.read(
                Settings, config=settings_file, environment={}, prefix=ENV_PREFIX, secrets_dir=None
            )
        except sources.Invalid:
            continue
        made = runtime_policy.compiled(read)
        asked = rules.Requester(user="u", groups=("g",))
        assert len(made.candidates(asked, "x1")) <= len(made.rules)


# -- what slurmrestd answers ----------------------------------------------------------------------

_JOB = {
    "job_id": 7,
    "job_state": ["RUNNING"],
    "step_id": {"sluid": "s7"},
    "flags": ["EXTERNAL_JOB"],
    "admin_comment": json.dumps(_COMMENT),
    "state_reason": "None",
    "nodes": "node[1-2]",
    "priority": {"set": True, "infinite": False, "number": 1},
    "submit_time": {"set": True, "infinite": False, "number": 1},
    "start_time": {"set": True, "infinite": False, "number": 2},
    "end_time": {"set": True, "infinite": False, "number": 3},
    "time_limit": {"set": True, "infinite": False, "number": 60},
    "memory_per_node": {"set": True, "infinite": False, "number": 60},
    "user_name": "u",
    "group_name": "g",
    "exit_code": {"return_code": {"set": True, "number": 1}, "signal": {"id": {"number": 2}}},
}
_SPEC = PlaceholderSpec(
    identity=_IDENTITY,
    name="x",
    user="u",
    group="g",
    cpus_per_task=1,
    memory_mib_per_node=1,
    required_nodes=(SlurmNode("n"),),
)
_ANSWERS: dict[str, tuple[Any, Callable[[SlurmClient], Any]]] = {
    "a job": ({"jobs": [_JOB], "errors": []}, lambda client: jobs.job(client, JobId(7))),
    "states": (
        {"jobs": [{"job_id": "7", "state": ["RUNNING"]}, {"job_id": "8+1", "state": []}]},
        lambda client: jobs.states(client, [JobId(7)]),
    ),
    "a submit": (
        {"job_id": 7, "errors": [{"error_number": 2050, "error": "no"}], "warnings": []},
        lambda client: jobs.submit(client, _SPEC),
    ),
    "a cancel": (
        {"status": [{"error": {"code": 0, "message": ""}}], "errors": []},
        lambda client: jobs.cancel(client, JobId(7)),
    ),
    "nodes": (
        {
            "nodes": [
                {"name": "n", "state": ["IDLE"], "cpus": 8, "features": ["a"], "gres": "gpu:1"}
            ]
        },
        nodes.listing,
    ),
}
_PING = {"meta": {"slurm": {"version": {"major": "26", "minor": "05"}}}}


class _Answering(Transport):
    """Whatever is asked gets the same answer."""

    def __init__(self) -> None:
        self.status, self.body = 200, b""

    @override
    async def exchange(self, operation: str, *_: Any, **__: Any) -> Reply:
        if operation == "ping":
            return Reply(status=200, body=json.dumps(_PING).encode())
        return Reply(status=self.status, body=self.body)

    @override
    def avoid(self, server: int) -> None:
        """There is no other."""


@pytest.fixture(scope="module")
def answering() -> _Answering:
    return _Answering()


@pytest.fixture(scope="module")
def client(answering: _Answering) -> SlurmClient:
    return SlurmClient(answering, connections=1, on_call=lambda _operation, _s, _outcome: None)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


_STATUSES = (200, 200, 200, 200, 200, 404, 422, 500, 511, 304)
_PIECES_OF_ANSWERS = ('{"jobs":', '"errors":', "[", "{", "}", "]", ",", '"7"')


@fuzzed
@given(batches(12))
def test_rest_answers(
    answering: _Answering,
    client: SlurmClient,
    loop: asyncio.AbstractEventLoop,
    batch: list[bytes],
) -> None:
    """Two bytes are question and status, the others what the body is made of."""
    for data in batch:
        question, status, rest = data[:1], data[1:2], data[2:]
        good, ask = _ANSWERS[sorted(_ANSWERS)[sum(question) % len(_ANSWERS)]]
        answering.status = _STATUSES[sum(status) % len(_STATUSES)]
        text = _document(good, rest, _PIECES_OF_ANSWERS).encode()
        answering.body = text + rest if sum(status) % 2 else text
        with contextlib.suppress(SlurmError):
            loop.run_until_complete(ask(client))
