"""How the house is built: rooms by subject, of a size that a newcomer can hold in the head, and one meaning for a word."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter

from tests.architecture.sources import GENERATED, PACKAGES, PRODUCT, ROOT, files, module, parsed

DOMAIN = ROOT / "bridge" / "domain"
MOST_LINES = 400
MOST_FILES = 14
MOST_FILES_OF_ADAPTERS = 20
MOST_ROOMS = 20
MOST_FLOORS = 7
NAMED_AFTER_NOTHING = {
    "facts",
    "forms",
    "hands",
    "steps",
    "holdings",
    "utils",
    "helpers",
    "managers",
}
TWINS = {"wire", "errors", "models", "sync"}
"""Modules whose classes stand beside a domain value, the other adapter's error, slurm-client's resource, or the same
client with an event loop, of the same name.
"""
ONE_IN_THE_HOUSE = {
    *(
        "Allocation",
        "Gang",
        "Grant",
        "Identity",
        "KubeNode",
        "Placeholder",
        "Pod",
        "SlurmJob",
        "SlurmNode",
        "Workload",
    ),
    *("Accounting", "Controller", "LoginSet", "NodeSet", "RestApi", "SlurmCluster", "Token"),
    *("Fault", "Lease", "Snapshot"),
}
"""What a reader takes for the glossary's, whatever module it is in. The kinds' own types are called NodeSetObject and so on."""


def test_no_module_is_too_long() -> None:
    long = {
        module(path): lines
        for path in files(*PACKAGES, "tests", "client", "exporter")
        if str(path.relative_to(ROOT)) not in GENERATED
        and (lines := len(path.read_text().splitlines())) > MOST_LINES
    }
    assert not long, long


def test_no_module_is_named_after_nothing() -> None:
    found = [
        module(path)
        for path in files(*PRODUCT, "client", "exporter")
        if set(path.stem.split("_")) & NAMED_AFTER_NOTHING
    ]
    assert not found, found


def test_no_folder_has_too_many_files() -> None:
    counts: dict[str, int] = defaultdict(int)
    for path in files(*PRODUCT, "client", "exporter"):
        if path.name != "__init__.py":
            counts[str(path.parent.relative_to(ROOT))] += 1
    adapters = {"bridge/slurm", "slurmruntime/kube"}
    full = {
        folder: count
        for folder, count in counts.items()
        if count > (MOST_FILES_OF_ADAPTERS if folder in adapters else MOST_FILES)
    }
    assert not full, full


def test_the_domain_has_few_rooms_on_few_floors() -> None:
    rooms = {
        path.stem if path.is_file() else path.name
        for path in DOMAIN.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__"}
    assert len(rooms) <= MOST_ROOMS, sorted(rooms)

    floors: dict[str, int] = {}
    below = _imports_between_rooms()
    for room in TopologicalSorter(below).static_order():  # raises for a cycle
        floors[room] = 1 + max((floors[each] for each in below.get(room, ())), default=0)
    assert max(floors.values()) <= MOST_FLOORS, floors


def test_a_class_name_means_one_thing_within_a_folder() -> None:
    """Names live in modules: `keys.Token` and `objects.Token` are clear. Two of one folder are not."""
    defined = defaultdict(list)
    for path in files(*PRODUCT, "client/slurmclient", "exporter/slurmexporter"):
        if path.stem in TWINS:
            continue
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[path.parent, node.name].append(module(path))
    shared = {name: places for (_, name), places in defined.items() if len(places) > 1}
    assert not shared, shared


def test_words_of_the_glossary_name_one_class_in_the_house() -> None:
    defined = defaultdict(list)
    for path in files(*PRODUCT):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and node.name in ONE_IN_THE_HOUSE:
                defined[node.name].append(module(path))
    shared = {name: places for name, places in defined.items() if len(places) > 1}
    assert not shared, shared


def _imports_between_rooms() -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for path in files("bridge/domain"):
        room = module(path).split(".")[2:3]
        for name in _imported(parsed(path)):
            other = name.split(".")
            if (
                room
                and other[:2] == ["bridge", "domain"]
                and len(other) > 2
                and other[2] != room[0]
            ):
                found[room[0]].add(other[2])
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module="bridge.domain", names=names):
                yield from (f"bridge.domain.{name.name}" for name in names)
            case ast.ImportFrom(module=str(name)):
                yield name
            case _:
                pass
