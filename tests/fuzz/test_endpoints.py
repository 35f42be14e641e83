"""Whatever is sent to the webhook and the extender is answered: bytes, JSON of any shape, real requests with something in them changed.

The applications run here as they are, called as uvicorn calls them; an exception would be raised into the test. The
extender's API server is real.
"""

import asyncio
import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.types import ASGIApp, Message

from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import Patterns, Policy, Rule
from extender import app as extender
from sandbox.client import Sandbox
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import SystemClock
from slurmruntime.process.metrics import Metrics
from slurmruntime.process.serve import BodyLimit
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId
from tests.webhook.recordings import recorded
from webhook import app as webhook

INPUTS = 2500
"""For each of four endpoints."""

FUZZED = settings(
    max_examples=INPUTS, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

texts = st.text(max_size=40) | st.sampled_from(
    [
        names.GATE,
        names.FINALIZER,
        f"{names.REQUEST_PREFIX}gres",
        f"{names.REQUEST_PREFIX}constraints",
        "\ud800",
        "\x00",
        "9" * 400,
        "1e999999999",
        "Infinity",
        "-0",
        "a" * 70_000,
    ]
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats()
    | texts
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
depths = st.integers(1, 200_000).map(lambda n: b'{"a":[' * n)

POLICY = Policy(rules=(Rule(name="all", source="all", namespaces=Patterns(["*"]), user="u"),))

FILTER_ARGS: dict[str, Any] = {
    "Pod": {
        "metadata": {
            "name": "p",
            "namespace": "n",
            "uid": "u",
            "labels": {names.JOB_ID_LABEL: "7"},
            "annotations": {names.NODE_ANNOTATION: "node-0"},
        },
        "spec": {"schedulingGates": [{"name": "x"}]},
    },
    "NodeNames": ["node-0", "node-1"],
    "Nodes": None,
}
BINDING_ARGS = {"PodName": "p", "PodNamespace": "n", "PodUID": "u", "Node": "node-0"}


def as_bytes(document: object) -> bytes:
    """JSON, with what JSON does not allow as well: NaN, lone surrogates."""
    return json.dumps(document).encode()


def paths(document: object, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something can be changed."""
    yield here
    if isinstance(document, dict):
        for key, value in document.items():
            yield from paths(value, (*here, key))
    if isinstance(document, list):
        for index, value in enumerate(document):
            yield from paths(value, (*here, index))


def changed(document: object, path: tuple[Any, ...], value: object) -> object:
    if not path:
        return value
    whole = copy.deepcopy(document)
    inner: Any = whole
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return whole


def bodies(*documents: object) -> st.SearchStrategy[bytes]:
    """Anything at all, and these documents with one or two places changed, or cut off."""
    places = [(document, path) for document in documents for path in paths(document)]

    def change(chosen: tuple[tuple[object, tuple[Any, ...]], object]) -> object:
        (document, path), value = chosen
        return changed(document, path, value)

    once = st.tuples(st.sampled_from(places), values).map(change)
    whole = once.map(as_bytes)
    cut = st.builds(lambda body, share: body[: int(len(body) * share)], whole, st.floats(0, 1))
    return st.binary(max_size=200) | values.map(as_bytes) | whole | whole | cut | depths


class Answer(NamedTuple):
    status: int
    body: bytes


Call = Callable[[str, bytes], Answer]


async def post(app: ASGIApp, path: str, body: bytes) -> Answer:
    """As uvicorn does; what the application raises comes out."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"timeout=5s",
        "headers": [(b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await BodyLimit(app)(scope, receive, send)
    return Answer(sent[0]["status"], b"".join(m.get("body", b"") for m in sent))


@pytest.fixture(scope="module")
def ask_webhook() -> Iterator[Call]:
    pods = webhook.PodReviewer(
        lambda: POLICY,
        defaults=Defaults(cluster=ClusterId("test")),
        scheduler_name=names.SCHEDULER_NAME,
    )
    app = webhook.create(pods, metrics=Metrics("webhook"))
    with asyncio.Runner() as runner:
        yield lambda path, body: runner.run(post(app, path, body))


@contextmanager
def opened(runner: asyncio.Runner, kubeconfig: str) -> Iterator[KubeClient]:
    context = KubeClient.open(kubeconfig, request_timeout_s=10, user_agent="extender/test")
    yield runner.run(context.__aenter__())
    runner.run(context.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def ask_extender(control_plane: Sandbox) -> Iterator[Call]:
    with asyncio.Runner() as runner, opened(runner, str(control_plane.kubeconfig)) as kube:
        app = extender.create(
            kube=kube,
            lookup=lambda _uid: None,
            clock=SystemClock(),
            metrics=Metrics("extender"),
        )
        yield lambda path, body: runner.run(post(app, path, body))


REVIEWS = [json.loads(recorded(name)) for name in ("pod", "rich-pod", "pod-of-a-job", "update")]


@pytest.mark.attack(
    "send any bytes, deep or wrong JSON to the webhook",
    "parsed by schema; 5000 inputs",
)
@pytest.mark.parametrize("path", ["/mutate", "/validate", "/admit"])
@FUZZED
@given(body=bodies(*REVIEWS))
def test_the_webhook_answers_whatever_it_is_sent(ask_webhook: Call, path: str, body: bytes) -> None:
    answer = ask_webhook(path, body)
    said = json.loads(answer.body)

    if answer.status == 200:
        assert "AdmissionReview" == said["kind"]
        assert isinstance(said["response"]["uid"], str)
        assert isinstance(said["response"]["allowed"], bool)
        # kube-apiserver reads at most 3 MiB of it, and a person has to
        assert len(answer.body) < 10 * len(body) + 4096
    else:
        assert (400, "Status") == (answer.status, said["kind"])


BODIES = {"/v1/filter": bodies(FILTER_ARGS), "/v1/bind": bodies(BINDING_ARGS)}


@pytest.mark.attack(
    "send any bytes, deep or wrong JSON to the extender",
    "parsed by schema; 5000 inputs",
)
@pytest.mark.parametrize("path", BODIES)
@FUZZED
@given(data=st.data())
def test_the_extender_answers_whatever_it_is_sent(
    ask_extender: Call, path: str, data: st.DataObject
) -> None:
    answer = ask_extender(path, data.draw(BODIES[path]))

    assert 200 == answer.status  # of any other status kube-scheduler shows only the number
    said = json.loads(answer.body)
    assert isinstance(said["Error"], str)
    if path.endswith("bind"):
        assert said["Error"], "nothing here is assigned to a node"
