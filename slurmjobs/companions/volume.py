"""Map paths on the cluster's nodes to paths on a volume that Kubernetes and Slurm nodes share."""


def within(path: str, folder: str) -> str | None:
    """Return a path relative to a folder of the cluster; None if it is not below it.

    No file system is asked: a path with `..` may lead anywhere, so it counts as outside.
    """
    parts, above = _parts(path), _parts(folder)
    if not path.startswith("/") or ".." in parts or len(parts) <= len(above):
        return None
    return "/".join(parts[len(above) :]) if parts[: len(above)] == above else None


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
