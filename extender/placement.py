"""Placement: what the elected leader looks at to get gated pods their nodes.

A pod is the leader's from CREATE until the patch that removes our gate, its deletion included.
"""

from datetime import UTC, datetime, timedelta

from bridge.domain import names
from bridge.domain.facts import Actor, Facts
from bridge.domain.ids import PodUid
from bridge.domain.jobs import JobPhase
from bridge.domain.pods import Pod
from bridge.domain.view import Past, View
from bridge.kube.cache import Cache
from bridge.runtime.lease import Accession
from extender.bridged import Bridged
from extender.submitting import Submitter

_HANDOVER = timedelta(seconds=2)
"""A pod created less than this before we led may have been in our predecessor's hands: clocks differ, watches lag."""


class Placement:
    """The extender's `Side` of the loop over pods."""

    actor = Actor.EXTENDER

    def __init__(
        self,
        *,
        pods: Cache[Pod],
        bridged: Bridged,
        submitter: Submitter,
        accession: Accession,
        leads_since: datetime,
    ) -> None:
        self._bridged = bridged
        self._submitter = submitter
        self._accession = accession
        self._leads_since = leads_since.astimezone(UTC)
        pods.subscribe(self._edited)

    def past(self, pod: Pod) -> Past:
        """Say whether a predecessor may have a submit for this pod in flight."""
        if pod.created_at > self._leads_since + _HANDOVER:
            return Past.NOTHING
        is_orderly = self._accession is Accession.ORDERLY
        return Past.HANDED_OVER if is_orderly else Past.IN_FLIGHT

    def gather(self, pod: Pod, view: View, *, now: datetime, since: datetime) -> Facts:
        """Look whether Kubernetes can take the pod on the node that Slurm chose, where it has."""
        running = [job for job in view.live if job.phase is JobPhase.RUNNING and job.nodes]
        kube_node = self._bridged.kube_node(running[0].nodes[0]) if running else None
        answer = self._bridged.check(pod, kube_node) if kube_node else None
        return Facts(
            pod=pod,
            view=view,
            now=now,
            since=since,
            kube_node=kube_node,
            fit=answer.fit if answer else None,
            fit_text=answer.text if answer else "",
            refusal=self._submitter.refusal(pod.uid),
        )

    def forget(self, uid: PodUid) -> None:
        """The pod has been placed, or is gone."""
        self._submitter.forget(uid)

    def _edited(self, old: Pod | None, new: Pod | None) -> None:
        """What was refused is not what is asked now."""
        if old and new and _asks(old) != _asks(new):
            self._submitter.retry(new.uid)


def _asks(pod: Pod) -> dict[str, str]:
    """What the pod itself asks of Slurm."""
    return {k: v for k, v in pod.annotations.items() if k.startswith(names.REQUEST_PREFIX)}
