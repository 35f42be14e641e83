"""Readers of whole bodies: objects of Kubernetes, reviews, requests of kube-scheduler."""

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec

from bridge.kube import decode
from bridge.kube.claims import resource_claims, slices
from extender import wire as extender_wire
from slurmclient.errors import SlurmError
from slurmjobs.objects import slurmjob
from slurmjobs.sylabs.job import KINDS, SylabsResource
from slurmjobs.sylabs.site import SylabsSite
from slurmoperator.keys import secrets
from slurmoperator.nodesets.nodeset import NODE_SET
from slurmruntime.kube import client, errors, nesting, node_objects
from slurmruntime.kube import secrets as kube_secrets
from slurmruntime.kube.errors import KubeError
from slurmruntime.process import serve
from tests.fuzz.grammars import json_of
from tests.fuzz.readers.reader import KUBERNETES, OBJECT, USER, Reader, in_bytes
from webhook import wire as webhook_wire

_HEAD = (
    '{"metadata":{"name":"a","uid":"u","namespace":"n","resourceVersion":"1",'
    '"creationTimestamp":"2026-11-27T00:00:00Z"'
)
_SPEC = '"spec":{"containers":[{"name":"a"}],"script":"#!/bin/sh\\n"'
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_FRAMES = (
    (f'{_HEAD},"annotations":{{', f'"z":""}}}},{_SPEC}}},"status":{{}}}}'),
    (f'{_HEAD},"labels":{{', f'"z":""}}}},{_SPEC}}}}}'),
    (f'{_HEAD},"finalizers":[', f'"z"]}},{_SPEC}}}}}'),
    (
        f'{_HEAD},"ownerReferences":[',
        f'{{"apiVersion":"v1","kind":"a","name":"b","uid":"c"}}]}},{_SPEC}}}}}',
    ),
    (f"{_HEAD}}},{_SPEC},", '"z":1},"status":{}}'),
    (f'{_HEAD}}},{_SPEC},"tolerations":[', "{}]}}"),
    (
        f'{_HEAD}}},{_SPEC},"affinity":{{"nodeAffinity":{{"{_REQUIRED}":{{"nodeSelectorTerms":[',
        "{}]}}}}}",
    ),
    (f'{_HEAD}}},{_SPEC},"resourceClaims":[', '{"name":"z"}]}}'),
    (f'{_HEAD}}},{_SPEC},"devices":[', "{}]}}"),
    (f'{_HEAD}}},{_SPEC},"devices":{{"requests":[', "{}]}}}"),
    (f'{_HEAD}}},{_SPEC}}},"status":{{"conditions":[', '{"type":"a","status":"b"}]}}'),
    (f'{_HEAD}}},{_SPEC}}},"status":{{"allocatable":{{', '"z":"1"}}}'),
    (f'{_HEAD}}},"data":{{', '"z":""}}'),
)
_ENTRIES = (
    *('"a":"b",', '{"key":"a"},', '"é":"",', '"a":"====",', '"a":"1",', '"a/b",'),
    *('{"operator":"Exists"},', '{"name":"a"},', '{"type":"a","status":"b"},'),
    *('{"apiVersion":"v1","kind":"a","name":"b","uid":"c"},',),
    *('{"matchExpressions":[{"key":"a","operator":"Exists"}]},',),
)
_PARAMETERS = 32 * 10 * 1024
"""Bytes of the parameters for drivers in a claim: nothing else can be nested too deep for the decoder."""
_BAD_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _body(
    name: str,
    read: Callable[[bytes], object],
    *refusals: type[Exception],
    most_bytes: int = OBJECT,
    dear: str = "",
) -> Reader:
    return Reader(
        name=name,
        author=KUBERNETES,
        most_bytes=most_bytes,
        read=in_bytes(read),
        grammar=json_of(*_FRAMES, more=_ENTRIES),
        refusals=(SlurmError, KubeError, *refusals),
        fixed_steps=8000,  # the frame takes most of the small input
        memory=200,
        dear=dear,
    )


def _request(name: str, read: Callable[[bytes], object], *refusals: type[Exception]) -> Reader:
    return Reader(
        name=name,
        author=KUBERNETES,
        most_bytes=serve.BODY_LIMIT_BYTES,
        read=in_bytes(read),
        grammar=json_of(
            (
                '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":',
                "}}",
            ),
            ('{"Pod":{"metadata":{"labels":{', '"z":""}}},"NodeNames":[]}'),
            ('{"Pod":{"metadata":{}},"NodeNames":[', '""]}'),
        ),
        refusals=refusals,
        memory=200,
    )


async def _lines(text: str) -> int:
    """Read a watch whose lines come in small pieces."""
    content = text.encode(errors="surrogatepass")

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 64):
            yield content[start : start + 64]

    return sum([len(line) async for line in client._lines("/", pieces())])


def _answer(content: bytes) -> object:
    return errors.from_answer("GET", "/", 429, content, content[:99].decode(errors="replace"))


READERS: tuple[Reader, ...] = (
    _body("bridge.kube.decode:pod", decode.pod),
    _body("bridge.kube.decode:bound_pod", decode.bound_pod),
    _body("bridge.kube.claims.resource_claims:claim", resource_claims.claim),
    _body("bridge.kube.claims.slices:resource_slice", slices.resource_slice),
    _body("slurmruntime.kube.node_objects:node", node_objects.node),
    _body("slurmruntime.kube.secrets:_read", kube_secrets._read),
    _body(
        "slurmruntime.kube.nesting:cut",
        nesting.cut,
        most_bytes=_PARAMETERS,
        dear="only for what is nested a thousand levels deep",
    ),
    _body("slurmruntime.kube.errors:from_answer", _answer),
    _body("slurmoperator.nodesets.nodeset:NODE_SET.read", NODE_SET.read),
    _body("slurmjobs.objects.slurmjob:JobResource.read", slurmjob.OURS.read, *_BAD_JSON),
    _body("slurmjobs.objects.slurmjob:read_metadata", slurmjob.read_metadata, *_BAD_JSON),
    *(
        _body(
            f"slurmjobs.sylabs.job:{kind.plural}.{kind.group}",
            SylabsResource(kind, SylabsSite()).read,
            *_BAD_JSON,
        )
        for kind in KINDS
    ),
    _request("webhook.wire:read", webhook_wire.read, webhook_wire.NotAReviewError),
    _request(
        "extender.wire:filter_args", extender_wire.filter_args, extender_wire.MalformedRequest
    ),
    _request(
        "extender.wire:binding_args", extender_wire.binding_args, extender_wire.MalformedRequest
    ),
    Reader(
        name="slurmruntime.kube.client:_lines",
        author=KUBERNETES,
        most_bytes=OBJECT,
        read=lambda text: asyncio.run(_lines(text)),
        dear="a watch, which waits for each piece",
    ),
    Reader(
        name="slurmoperator.keys.secrets:decode",
        author=USER,
        most_bytes=OBJECT,
        read=secrets.decode,
    ),
)
