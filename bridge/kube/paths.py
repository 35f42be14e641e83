"""Paths of the API, made of names that other people chose.

An owner reference may name anything, and the API server splits a path only after decoding it: `a%2Fb` would reach
another object than the one that was meant. So, as in client-go, what can be no object's name gets into no path.
"""

from urllib.parse import quote

from bridge.kube.errors import NotFound


def of(*segments: str) -> str:
    """Join segments: `of("api", "v1", "nodes", "node-1")`.

    Raises:
        NotFound: one of them is no name, so there is no such object.
    """
    for segment in segments:
        if segment in ("", ".", "..") or "/" in segment or "%" in segment:
            raise NotFound("GET", "/".join(segments), message=f"no object is called {segment!r}")
    return "/" + "/".join(quote(segment) for segment in segments)


def collection(api_version: str, plural: str = "", namespace: str = "") -> str:
    """Say where objects of a kind are: `collection("batch/v1", "jobs", "default")`.

    Args:
        api_version: `v1`, `batch/v1` …
        plural: `jobs`; "" for the group itself.
        namespace: "" for all, or where the kind is cluster-wide.

    Raises:
        NotFound: one of them is no name.
    """
    group, _, version = api_version.rpartition("/")
    root = ("apis", group, version) if group else ("api", version)
    where = ("namespaces", namespace) if namespace else ()
    return of(*root, *where, *((plural,) if plural else ()))
