"""Submits lost placeholders again, once for all pods of each, for the nodes where the pods are."""

import structlog

from bridge.domain.lifecycle.actions import Restore
from bridge.domain.lifecycle.decision import SubmitRefusal
from bridge.domain.lifecycle.refusals import Refusals
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.request import restoration
from bridge.reconcile.placeholders import Placeholders
from bridge.slurm import jobs
from controllers.pods.evidence import EvidenceLookup
from slurmclient import errors
from slurmruntime.kube.cache import Cache
from slurmruntime.model import nodes
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.clock import Clock
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import SlurmNode

_log = structlog.get_logger(__name__)


class Restorer:
    """Restores placeholders during one term of leadership.

    Remembers refusals until the next accepted submit.
    """

    def __init__(
        self,
        slurm: SlurmClient,
        *,
        placeholders: Placeholders,
        pods: Cache[Pod],
        kube_nodes: Cache[KubeNodeFacts],
        lookup: EvidenceLookup,
        clock: Clock,
    ) -> None:
        self._slurm = slurm
        self._placeholders = placeholders
        self._placed_by = pods.index(
            lambda pod: [pod.placed_by] if pod.assigned_node and not pod.is_terminal else []
        )
        self._kube_nodes = kube_nodes
        self._lookup = lookup
        self._clock = clock
        self._under_way: set[str] = set()
        self._refusals: Refusals[str] = Refusals()

    def refusal(self, pod: Pod) -> SubmitRefusal | None:
        """Return why a new placeholder for this pod was refused; None once one was accepted."""
        return self._refusals.get(pod.placed_by)

    async def restore(self, pod: Pod, action: Restore) -> None:
        """Submit the placeholder, or remember why not.

        It may be under way already for another member.

        Raises:
            LostReply: it may have been accepted; the next readings show whether it was.
            SlurmError: it was not submitted.
        """
        if action.lost in self._under_way:
            return
        spec = self._spec(pod, action)
        if spec is None:
            self._refuse(action.lost, "none of its pods' nodes exists in Kubernetes any more")
            return
        self._under_way.add(action.lost)
        may_still_happen = False
        try:
            job_id = await jobs.submit(self._slurm, spec)
        except errors.LostReply:
            may_still_happen = True
            raise
        except (errors.Declined, errors.TooOld) as refusal:
            self._refuse(action.lost, refusal.words)
        else:
            self._placeholders.submitted(job_id, spec.identity)
            self._refusals.clear(action.lost)
            _log.warning(
                "placeholder.restored", job_id=job_id, lost=action.lost, nodes=spec.required_nodes
            )
        finally:
            self._under_way.discard(action.lost)
            self._placeholders.wrote(spec.identity.key, may_still_happen=may_still_happen)

    def _spec(self, pod: Pod, action: Restore) -> PlaceholderSpec | None:
        members = self._placed_by.get(action.lost)
        names = sorted({name for member in members if (name := self._slurm_node(member))})
        if pod.grant is None or not names:
            return None
        identity, grant = pod.grant
        return restoration.placeholder(
            identity,
            grant,
            lost=action.lost,
            pods=sorted(member.uid for member in members),
            nodes=names,
            record=self._lookup.finding(pod).record,
            now=self._placeholders.now(),
        )

    def _slurm_node(self, pod: Pod) -> SlurmNode | None:
        name = pod.kube_node or pod.assigned_node
        node = self._kube_nodes.get(name) if name else None
        return nodes.slurm_name(node) if node else None

    def _refuse(self, lost: str, text: str) -> None:
        refusal = self._refusals.add(lost, text, at=self._placeholders.now())
        _log.warning("placeholder.restore_refused", lost=lost, text=text, attempts=refusal.attempts)
