"""Operations of a JSON patch (RFC 6902), as pure values."""

from collections.abc import Collection, Mapping

Operation = Mapping[str, object]


def test(path: str, value: object) -> Operation:
    """Let the patch fail unless the value at the path is this one; None: unless it is absent."""
    return {"op": "test", "path": path, "value": value}


def add(path: str, value: object) -> Operation:
    """Set an entry of a map, or insert into a list; a path that ends in `/-` appends."""
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: object) -> Operation:
    """Replace the value at the path."""
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> Operation:
    """Remove the value at the path."""
    return {"op": "remove", "path": path}


def append(path: str, value: object, *, to: Collection[object] | None) -> Operation:
    """Append to the list at the path; create a list that is missing or empty so far."""
    return add(f"{path}/-", value) if to else add(path, [value])


def unchanged(uid: str, version: str) -> list[Operation]:
    """Let the patch fail unless it is this very version of this object."""
    return [test("/metadata/uid", uid), test("/metadata/resourceVersion", version)]


def create(path: str, value: object) -> list[Operation]:
    """Set a value that must be absent so far, where `add` alone would replace another's."""
    return [test(path, None), add(path, value)]


def escape(key: str) -> str:
    """Quote a key for a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
