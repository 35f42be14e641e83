"""The Kubernetes node that a numbered worker returns to, if its NodeSet pins (`pinToNode`)."""

from collections.abc import Collection, Container, Mapping


def pins(
    before: Mapping[str, str],
    bound: Mapping[int, str],
    *,
    desired: Collection[int],
    nodes: Container[str],
    shares: bool,
) -> dict[str, str]:
    """Return the Kubernetes node of each desired worker by ordinal, as `status.ordinalToNode` has it.

    A worker's first node stays its own while Kubernetes has that node. A worker that is scaled in loses its node. So does one
    without a pod whose node another worker has taken: it would wait for ever. `bound` are the nodes of existing pods, `nodes`
    those that Kubernetes has; `shares` is whether several workers may be on one node.
    """
    holders = {} if shares else {node: ordinal for ordinal, node in bound.items()}
    by_ordinal = {}
    for ordinal in sorted(desired):
        node = before.get(str(ordinal), "")
        if not node or node not in nodes or holders.get(node, ordinal) != ordinal:
            node = bound.get(ordinal, "")
        if node:
            by_ordinal[str(ordinal)] = node
    return by_ordinal
