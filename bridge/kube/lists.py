"""One-shot list of objects; long-running callers use `bridge.kube.watch`."""

from collections.abc import Mapping
from typing import TypeVar

from bridge.kube import decode, paths
from bridge.kube.client import NO_PARAMS, KubeClient
from bridge.kube.decode import ResourceKind

T = TypeVar("T")

_PAGE = 500


async def listing(
    client: KubeClient,
    kind: ResourceKind[T],
    *,
    namespace: str = "",
    params: Mapping[str, str] = NO_PARAMS,
) -> list[T]:
    """Return all objects of a kind, read page by page.

    Args:
        client: the API server.
        kind: from `bridge.kube.decode`.
        namespace: "" for all.
        params: selectors.

    Raises:
        KubeError: the list could not be read, or its continue token has expired (410); list again.
    """
    path = _path(kind.path, namespace)
    found: list[T] = []
    token = ""
    while True:
        query = {**params, "limit": str(_PAGE), **({"continue": token} if token else {})}
        page = decode.page(path, await client.request("GET", path, params=query))
        found.extend(map(kind.read, page.items))
        token = page.metadata.continue_
        if not token:
            return found


def _path(collection: str, namespace: str) -> str:
    if not namespace:
        return collection
    root, _, plural = collection.rpartition("/")
    return root + paths.of("namespaces", namespace, plural)
