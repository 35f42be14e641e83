"""To which Kubernetes node a worker with a number returns, if its NodeSet wants that (`pinToNode`)."""

from collections.abc import Callable, Collection, Mapping


def pins(
    before: Mapping[str, str],
    bound: Mapping[int, str],
    *,
    wanted: Collection[int],
    has_node: Callable[[str], bool],
    shares: bool,
) -> dict[str, str]:
    """Return which worker belongs to which Kubernetes node from now on, by number: as `status.ordinalToNode` has it.

    Its first node stays its own while Kubernetes has it. A worker that is scaled in loses its node, and so does one without a pod
    whose node another worker has taken meanwhile: it would wait for that for ever.

    Args:
        before: what was in force until now.
        bound: the nodes of the pods that are there, by number.
        wanted: the numbers that there are to be.
        has_node: says whether Kubernetes has a node.
        shares: several workers may be on one node.
    """
    holders = {} if shares else {node: number for number, node in bound.items()}
    found = {}
    for number in sorted(wanted):
        node = before.get(str(number), "")
        if not node or not has_node(node) or holders.get(node, number) != number:
            node = bound.get(number, "")
        if node:
            found[str(number)] = node
    return found
