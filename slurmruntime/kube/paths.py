"""Build API paths from names chosen by others.

An owner reference may name anything, and the API server decodes a path before it splits it, so
`a%2Fb` would address a different object from the one intended. As in client-go, a string that
cannot be an object's name is never put into a path.
"""

from urllib.parse import quote

from slurmruntime.kube.errors import NotFound


def of(*segments: str) -> str:
    """Join segments: `of("api", "v1", "nodes", "node-1")`; raise NotFound if one is not a valid name."""
    for segment in segments:
        if segment in ("", ".", "..") or "/" in segment or "%" in segment:
            raise NotFound(
                "GET", "/".join(segments), message=f"{segment!r} is not a valid object name"
            )
    return "/" + "/".join(quote(segment) for segment in segments)


def collection(api_version: str, plural: str = "", namespace: str = "") -> str:
    """Return the path of a collection: `collection("batch/v1", "jobs", "default")`.

    Args:
        plural: "" for the group itself.
        namespace: "" for all, or if the kind is cluster-scoped.

    Raises:
        NotFound: an argument is not a valid name.
    """
    group, _, version = api_version.rpartition("/")
    root = ("apis", group, version) if group else ("api", version)
    where = ("namespaces", namespace) if namespace else ()
    return of(*root, *where, *((plural,) if plural else ()))


def pod(namespace: str, name: str) -> str:
    """Return the path of a pod."""
    return of("api", "v1", "namespaces", namespace, "pods", name)
