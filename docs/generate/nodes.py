"""Write the tables of `docs/nodes.md` from the decisions themselves: page in, page out.

Text outside the markers is kept (`make docs`).
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from bridge.domain.model import demand
from bridge.domain.nodes import registration
from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes import state as node_state
from bridge.domain.nodes.actions import (
    Cordon,
    Delete,
    Down,
    Drain,
    NodeAction,
    Respond,
    Resume,
    SetAddress,
    SetFeatures,
    SetTopology,
    SetWeight,
    Uncordon,
    Undrain,
)
from bridge.domain.nodes.decision import NodeFacts, NodeSettings
from bridge.domain.nodes.spec import Publishing
from bridge.domain.nodes.state import NodeRules
from docs.generate import markdown
from slurmruntime.model import nodes
from slurmruntime.model.nodes import Allocatable, KubeNodeFacts, NodeCondition, SlurmNodeFacts
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, KubeNode

_CLUSTER = ClusterId("cluster")
_PUBLISHING = Publishing(cluster=_CLUSTER, node_features=("zone",))
_POLICY = NodeRules(drain_conditions=frozenset({"KernelDeadlock"}), cordons=True)
_SETTINGS = NodeSettings(publishing=_PUBLISHING, policy=_POLICY)
_SINCE = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)

_KUBE = KubeNodeFacts(
    name=KubeNode("n1"),
    uid="u",
    labels={names.EXTERNAL_NODE_LABEL: "true", "zone": "a"},
    allocatable=Allocatable(milli_cpu=8000, memory_bytes=2**34),
    internal_ip="10.0.0.1",
)
_SPEC = node_spec.spec(_KUBE, demand.total([]), _PUBLISHING)
_SLURM = SlurmNodeFacts(
    name=nodes.slurm_name(_KUBE),
    states=frozenset({"IDLE", "EXTERNAL"}),
    cpus=_SPEC.cpus,
    memory_mib=_SPEC.memory_mib,
    features=_SPEC.features,
    address=_SPEC.address,
)


def _slurm(*flags: str, reason: str = "", by: str = "", reservation: str = "") -> SlurmNodeFacts:
    base = {"DOWN"} if "DOWN" in flags else {"IDLE"}
    return replace(
        _SLURM,
        states=frozenset({"EXTERNAL", *base, *flags}),
        reason=reason,
        reason_by=by,
        reason_at=_SINCE if by else None,
        reservation=reservation,
    )


def _annotated(**more: str) -> KubeNodeFacts:
    return replace(_KUBE, annotations=more)


_CORDONED = replace(_KUBE, is_unschedulable=True)
_NOT_READY = replace(_KUBE, is_ready=False)
_OURS = node_state.REASON_PREFIX + node_state.CORDONED
_LOST = node_state.REASON_PREFIX + node_state.GIVEN_UP

_CRASHED = node_state.REASON_PREFIX + node_state.CRASHED
_MISSING = f"{node_state.REASON_PREFIX}devices are missing: Slurm has gpu:9, Kubernetes has none"

_Row = tuple[KubeNodeFacts, SlurmNodeFacts, bool] | tuple[KubeNodeFacts, SlurmNodeFacts, bool, bool]
_TO_SLURM: Mapping[str, _Row] = {
    "cordoned": (_CORDONED, _SLURM, False),
    "uncordoned; the drain is ours": (_KUBE, _slurm("DRAIN", reason=_OURS), False),
    "uncordoned; the drain is somebody's": (_KUBE, _slurm("DRAIN", reason="ops"), False),
    "cordoned by us": (
        replace(_CORDONED, annotations={names.CORDON_ANNOTATION: "ops"}),
        _SLURM,
        False,
    ),
    "not ready": (_NOT_READY, _SLURM, False),
    "not ready, and every pod of ours there is being deleted": (
        _NOT_READY,
        _slurm("DRAIN", reason=node_state.REASON_PREFIX + node_state.NOT_READY),
        True,
    ),
    "the same, but somebody has drained it": (_NOT_READY, _slurm("DRAIN", reason="ops"), True),
    "ready again; the DOWN is ours": (_KUBE, _slurm("DOWN", "DRAIN", reason=_LOST), False),
    "every pod of ours there was lost with the machine, as after a reboot": (
        _KUBE,
        _SLURM,
        False,
        True,
    ),
    "they are settled; the DOWN is ours": (_KUBE, _slurm("DOWN", reason=_CRASHED), False),
    "a listed condition is True": (
        replace(_KUBE, conditions=(NodeCondition(type="KernelDeadlock", status="True"),)),
        _SLURM,
        False,
    ),
    "node label changed": (
        replace(_KUBE, labels={**_KUBE.labels, "zone": "b"}),
        _slurm("MIXED"),
        False,
    ),
    "address changed": (replace(_KUBE, internal_ip="10.0.0.2"), _slurm("MIXED"), False),
    "topology annotation changed": (
        _annotated(**{names.TOPOLOGY_ANNOTATION: "topo-switch:s2"}),
        _slurm("MIXED"),
        False,
    ),
    "weight annotation changed": (
        _annotated(**{names.WEIGHT_ANNOTATION: "9"}),
        _slurm("MIXED"),
        False,
    ),
    "CPUs or memory became less; jobs run": (_KUBE, replace(_slurm("MIXED"), cpus=16), False),
    "the same; no job runs": (_KUBE, replace(_SLURM, cpus=16), False),
    "GPUs became less": (_KUBE, replace(_slurm("MIXED"), gres="gpu:9"), False),
    "five minutes later; no job runs": (
        _KUBE,
        replace(_slurm("DRAIN", reason=_MISSING), gres="gpu:9"),
        False,
    ),
    "they came back before that": (_KUBE, _slurm("DRAIN", reason=_MISSING), False),
    "partitions changed; jobs run": (
        _KUBE,
        replace(_slurm("MIXED"), features=(*_SLURM.features[:1], "debug", *_SLURM.features[1:])),
        False,
    ),
    "CPUs or memory became more; jobs run": (_KUBE, replace(_slurm("MIXED"), cpus=4), False),
    "Slurm says NOT_RESPONDING; jobs run": (_KUBE, _slurm("MIXED", "NOT_RESPONDING"), False),
    "it does, or they became more; no job runs": (
        _KUBE,
        _slurm("NOT_RESPONDING"),
        False,
    ),
    "label removed; jobs run": (replace(_KUBE, labels={}), _slurm("MIXED"), False),
    "label removed, or node deleted; no job runs": (replace(_KUBE, labels={}), _SLURM, False),
}

_TO_KUBE: Mapping[str, SlurmNodeFacts] = {
    "in service": _SLURM,
    "drained by somebody, idle": _slurm("DRAIN", reason="bad memory", by="root"),
    "drained by somebody, jobs run": _slurm("DRAIN", "MIXED", reason="bad memory", by="root"),
    "drained without a reason": _slurm("DRAIN"),
    "drained by us": _slurm("DRAIN", reason=_OURS, by="root"),
    "DOWN": _slurm("DOWN", reason="no fan", by="root"),
    "FAIL": _slurm("FAIL", reason="ECC", by="root"),
    "in a reservation": _slurm("RESERVED", reservation="exam"),
    "in a reservation for maintenance": _slurm("MAINTENANCE", "RESERVED", reservation="upkeep"),
    "NOT_RESPONDING": _slurm("NOT_RESPONDING"),
}


def render(page: str) -> str:
    """Return the page with fresh tables."""
    tables = {
        "to slurm": markdown.table(
            ["Kubernetes", "what Slurm is told"],
            ([what, _to_slurm(*facts)] for what, facts in _TO_SLURM.items()),
        ),
        "to kubernetes": markdown.table(
            ["Slurm", "condition", "reason", "message", "with `cordon_drained_nodes` also"],
            ([what, *_to_kube(facts)] for what, facts in _TO_KUBE.items()),
        ),
    }
    for name, table in tables.items():
        before, mark, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        page = f"{before}{mark}{table}{end}{after}"
    return page


def _to_slurm(
    kube_node: KubeNodeFacts,
    slurm_node: SlurmNodeFacts,
    is_given_up: bool,  # noqa: FBT001  # a row
    is_crashed: bool = False,  # noqa: FBT001, FBT002
) -> str:
    facts = NodeFacts(
        name=slurm_node.name,
        kube_node=kube_node,
        slurm_node=slurm_node,
        is_confirmed=True,
        is_given_up=is_given_up,
        is_crashed=is_crashed,
        reason_age=_POLICY.device_patience,
    )
    said = [_in_words(action) for action in registration.plan(facts, _SETTINGS).actions]
    return ", then ".join(filter(None, said)) or "nothing"


def _in_words(action: NodeAction) -> str:
    match action:
        case Drain(reason=reason):
            return f"DRAIN, `{reason}`"
        case Down(reason=reason):
            return f"DOWN, `{reason}`: its jobs end as NODE_FAIL"
        case Undrain():
            return "UNDRAIN"
        case Resume():
            return "RESUME"
        case Respond():
            return "a registration as a slurmd sends one, which clears it"
        case SetAddress(address=address) if address == _SLURM.address:
            return "its address, which that replaces"
        case Delete():
            return "delete; if the node is still wanted, it is created again at the next look"
        case SetFeatures() | SetAddress() | SetTopology() | SetWeight():
            return "the new one, in place"
        case _:
            return ""


def _to_kube(slurm_node: SlurmNodeFacts) -> list[str]:
    said = node_state.condition(slurm_node)
    fresh = [type(action) for action in node_state.to_kube(_KUBE, slurm_node, _POLICY)]
    marked = replace(_CORDONED, annotations={names.CORDON_ANNOTATION: "x"})
    lifted = [type(action) for action in node_state.to_kube(marked, slurm_node, _POLICY)]
    cordon = "cordon" if Cordon in fresh else "our cordon is lifted" if Uncordon in lifted else ""
    return [said.status, f"`{said.reason}`", said.message, cordon]


if __name__ == "__main__":
    sys.stdout.write(render(sys.stdin.read()))
