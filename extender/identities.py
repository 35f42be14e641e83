"""Whom a workload's job runs as in Slurm, and whether it may have what it asks for: decided anew before every submit.

Who made a pod was written on it by the webhook and cannot be changed since. Where that was a controller, and the cluster
records the creators of objects, it is whoever made the pod's nearest owner that was not made by a controller itself.
"""

from collections.abc import Callable, Mapping, Sequence

from bridge.domain import names
from bridge.domain.faults import Fault
from bridge.domain.pods import Pod
from bridge.domain.request import permit
from bridge.domain.request.overrides import Overrides
from bridge.domain.request.permit import Ask, Permit
from bridge.domain.request.rules import Policy, Requester
from bridge.kube import errors, objects
from bridge.kube.client import KubeClient
from bridge.runtime.clock import Clock
from extender.owners import Owners

_REMEMBERED_S = 30.0
_REMEMBERED = 4096


class Identities:
    """Applies the policy to pods that have been let in."""

    def __init__(
        self, kube: KubeClient, *, policy: Callable[[], Policy], owners: Owners, clock: Clock
    ) -> None:
        self._kube = kube
        self._policy = policy
        self._owners = owners
        self._clock = clock
        self._labels: dict[str, tuple[float, Mapping[str, str]]] = {}

    async def permit(self, members: Sequence[Pod], asked: Overrides) -> Permit | tuple[Fault, ...]:
        """Decide on the effective request of a workload's members, of which there is at least one.

        Raises:
            KubeError: an owner or the namespace could not be read.
        """
        policy = self._policy()
        granted: list[Permit] = []
        for pod in members:
            answer = await self._of_one(policy, pod, asked)
            if isinstance(answer, tuple):
                return answer
            granted.append(answer)
        users = sorted(
            {f"{each.user}:{each.group} in account {each.account!r}" for each in granted}
        )
        if len(users) > 1:
            return (
                Fault(
                    permit.PATH,
                    f"refused: one job has one user, and the policy makes its pods those of {', '.join(users)}",
                ),
            )
        return granted[0]

    async def _of_one(
        self, policy: Policy, pod: Pod, asked: Overrides
    ) -> Permit | tuple[Fault, ...]:
        requester = Requester(user=pod.annotations.get(names.REQUESTER_ANNOTATION, ""))
        named = _named(pod.annotations.get(names.RULES_ANNOTATION))
        if policy.acts_for_others(requester):
            creator = await self._owners.creator(
                pod, policy.creator_annotation, is_controller=policy.controllers.match
            )
            if creator:
                requester, named = Requester(user=creator), None
        labels = await self._labels_of(pod.namespace) if policy.asks_for_labels else {}
        rule = policy.holding(requester, pod.namespace, labels, named=named)
        if rule is None:
            why = policy.nobody(requester, pod.namespace, named=named)
            return (Fault(permit.PATH, why),)
        choices = permit.node_choices(
            has_selector=bool(pod.node_selector), has_terms=bool(pod.node_terms)
        )
        ask = Ask(overrides=asked, deadline_s=pod.deadline_s, node_choices=choices)
        return permit.decide(rule, ask, requester=requester, namespace=pod.namespace)

    async def _labels_of(self, namespace: str) -> Mapping[str, str]:
        now = self._clock.monotonic()
        read_at, labels = self._labels.get(namespace, (-_REMEMBERED_S, {}))
        if now - read_at < _REMEMBERED_S:
            return labels
        try:
            labels = (await objects.get_namespace(self._kube, namespace)).labels
        except errors.NotFound:
            labels = {}
        while len(self._labels) >= _REMEMBERED:
            self._labels.pop(next(iter(self._labels)))
        self._labels[namespace] = (now, labels)
        return labels


def _named(text: str | None) -> Sequence[str] | None:
    """None where no webhook of ours has seen the pod: older than the policy, or let in by another way."""
    return None if text is None else [name for name in text.split(",") if name]
