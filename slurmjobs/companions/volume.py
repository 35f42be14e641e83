"""Where a file of the cluster lies on a volume that both worlds mount."""


def within(path: str, folder: str) -> str | None:
    """Return the path relative to a folder of the cluster; None if it lies elsewhere.

    Nothing is looked up: a path with `..` in it may lead anywhere, so it lies elsewhere too.
    """
    parts, above = _parts(path), _parts(folder)
    if not path.startswith("/") or ".." in parts or len(parts) <= len(above):
        return None
    return "/".join(parts[len(above) :]) if parts[: len(above)] == above else None


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
