"""One-shot lists of objects; long-running callers use `slurmruntime.kube.watch`."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

import msgspec

from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.client import JSON, METADATA_ONLY_LIST, NO_PARAMS, KubeClient
from slurmruntime.kube.resource import ResourceKind
from slurmruntime.values.ids import PodUid

T = TypeVar("T")

_PAGE = 500
"""Objects per page, as in client-go."""


async def listing(
    client: KubeClient,
    kind: ResourceKind[T],
    *,
    namespace: str = "",
    params: Mapping[str, str] = NO_PARAMS,
) -> list[T]:
    """Return all objects of a kind, of one namespace or all, read page by page.

    Raises:
        KubeError: the list could not be read, or its continue token has expired (410); list again.
    """
    path = _path(kind.path, namespace)
    return [kind.read(item) async for item in _items(client, path, params)]


async def readable(
    client: KubeClient,
    kind: ResourceKind[T],
    *,
    namespace: str = "",
    params: Mapping[str, str] = NO_PARAMS,
) -> list[T]:
    """Return the objects that can be decoded, otherwise like `listing`: an odd one must not hide the others."""
    objects: list[T] = []
    async for item in _items(client, _path(kind.path, namespace), params):
        with contextlib.suppress(errors.Malformed):
            objects.append(kind.read(item))
    return objects


async def pod_uids(client: KubeClient, namespace: str) -> frozenset[PodUid]:
    """Return the uids of all pods of a namespace, from the API server, not from a cache."""
    path = paths.collection("v1", "pods", namespace)
    items = _items(client, path, NO_PARAMS, accept=METADATA_ONLY_LIST)
    return frozenset([PodUid(resource.identity(item).uid) async for item in items])


async def _items(
    client: KubeClient, path: str, params: Mapping[str, str], *, accept: str = JSON
) -> AsyncIterator[msgspec.Raw]:
    token = ""
    while True:
        query = {**params, "limit": str(_PAGE), **({"continue": token} if token else {})}
        page = resource.page(path, await client.request("GET", path, params=query, accept=accept))
        for item in page.items:
            yield item
        token = page.metadata.continue_
        if not token:
            return


def _path(collection: str, namespace: str) -> str:
    if not namespace:
        return collection
    root, _, plural = collection.rpartition("/")
    return root + paths.of("namespaces", namespace, plural)
