"""Write `docs/glossary.md` from the definitions in the code: `python -m docs.generate.glossary > docs/glossary.md`.

A term's text is the first paragraph of the docstring that defines it. To change the text, change that docstring.
"""

import ast
import importlib
import inspect
import sys
from collections.abc import Mapping
from types import ModuleType

_INTRODUCTION = """\
# Glossary

<!-- Generated: python -m docs.generate.glossary > docs/glossary.md -->

Our own terms, as the code defines them. Terms of Kubernetes and Slurm keep their usual meaning.

| term | meaning | defined in |
| --- | --- | --- |
"""

TERMS: Mapping[str, str] = {
    "adopt": "bridge.domain.lifecycle.actions.Adopt",
    "assign, pin": "bridge.domain.lifecycle.actions.Assign",
    "bridged node": "bridge.domain.request.candidates.BridgedNode",
    "cancel": "bridge.domain.lifecycle.actions.Cancel",
    "circuit breaker": "bridge.domain.lifecycle.breaker",
    "cluster id": "slurmruntime.values.ids.ClusterId",
    "complete": "bridge.domain.lifecycle.actions.Complete",
    "cordon": "bridge.domain.nodes.actions.Cordon",
    "drain": "bridge.domain.nodes.actions.Drain",
    "evict": "bridge.domain.lifecycle.actions.Evict",
    "external node": "slurmruntime.values.names.EXTERNAL_NODE_LABEL",
    "fault": "slurmruntime.values.faults.Fault",
    "filler": "bridge.domain.nodes.fillers",
    "finalizer": "slurmruntime.values.names.FINALIZER",
    "gang": "bridge.domain.gang",
    "gate": "slurmruntime.values.names.GATE",
    "grant": "bridge.domain.model.grant",
    "hybrid node": "slurmruntime.values.names.HYBRID_NODE_LABEL",
    "identity": "bridge.domain.model.identities.Identity",
    "lease": "slurmruntime.model.leases",
    "mark (of a node)": "slurmruntime.values.names.CLUSTER_FEATURE",
    "member": "bridge.domain.gang.members.Member",
    "orphan": "bridge.domain.lifecycle.orphans",
    "parked node": "bridge.domain.nodes.parking",
    "placeholder": "bridge.domain.model.placeholder",
    "policy, rule": "bridge.domain.request.rules",
    "rank": "slurmruntime.values.names.RANK_ANNOTATION",
    "release": "bridge.domain.lifecycle.actions.Release",
    "request": "bridge.domain.request.effective",
    "requester": "bridge.domain.request.rules.Requester",
    "restore": "bridge.domain.lifecycle.actions.Restore",
    "set aside": "slurmruntime.values.oddities.Oddities",
    "slot, seat": "bridge.domain.gang.seating",
    "SLUID": "slurmruntime.values.ids.Sluid",
    "term": "bridge.reconcile.leadership",
    "view": "bridge.domain.observation.view",
    "workload": "bridge.domain.workloads.workload",
    "workload key": "slurmruntime.values.ids.WorkloadKey",
}
"""Term -> the module, class or constant whose docstring defines it; sorted."""


def render() -> str:
    """Return the page."""
    return _INTRODUCTION + "".join(
        f"| **{term}** | {meaning(name)} | `{name}` |\n" for term, name in TERMS.items()
    )


def meaning(name: str) -> str:
    """Return the first paragraph of the docstring of a module, class or constant, as one line.

    Raises:
        LookupError: nothing of that name has a docstring.
    """
    paragraph, _, _ = inspect.cleandoc(_docstring(name)).partition("\n\n")
    return " ".join(paragraph.split()).replace("|", "\\|")


def _docstring(name: str) -> str:
    try:
        text = importlib.import_module(name).__doc__
    except ModuleNotFoundError:
        path, _, attribute = name.rpartition(".")
        text = _of_attribute(importlib.import_module(path), attribute)
    if not text:
        raise LookupError(
            f"{name} has no docstring, or does not exist: correct docs/generate/glossary.py"
        )
    return text


def _of_attribute(module: ModuleType, name: str) -> str | None:
    """Read the source: a constant's docstring is the string that follows it, and nothing keeps it at run time."""
    body = ast.parse(inspect.getsource(module)).body
    for statement, following in zip(body, [*body[1:], None], strict=True):
        match statement, following:
            case ast.ClassDef(name=found), _ if found == name:
                return ast.get_docstring(statement)
            case (
                ast.Assign(targets=[ast.Name(id=found)]) | ast.AnnAssign(target=ast.Name(id=found)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if found == name:
                return text
    return None


if __name__ == "__main__":
    sys.stdout.write(render())
