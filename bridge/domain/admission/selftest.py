"""Test our own webhook through the API server, with two pods that are never created.

One asks Slurm for a field that does not exist. A refusal that names this field shows that the API
server reaches the webhook, trusts its certificate and has it judge pods. With two calls it shows
that pods are handed over, too, as a policy would have refused the pod otherwise; with one call
(`admission.calls: one`) the pod is refused before it would have been handed over. The other pod has
no fault, and must come out handed over to Slurm. Both are dry runs, and a policy allows nothing
else in the namespace of the test.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.domain.request import overrides
from bridge.domain.request.rules import Policy, Rule
from slurmruntime.model.objects import JsonObject
from slurmruntime.values import names
from slurmruntime.values.names import REQUEST_PREFIX

_FIELD = "self-test"

FAULT = overrides.path(_FIELD)
"""The path of the fault that the webhook finds."""

POLICY = Policy(rules=(Rule(name="the self-test", source="the self-test", user="nobody"),))
"""The policy in the test's namespace: the administrator's rules may not apply to us.

No configured rule can have this name, so nothing would be submitted for such a pod.
"""

SOUND_POD: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "slurm-bridge-self-test"},
    "spec": {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "none",
                "image": "invalid.invalid/none",
                "resources": {
                    "requests": {"cpu": "1m", "memory": "1Mi"},
                    "limits": {"cpu": "1m", "memory": "1Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    },
}
"""As modest as other policies may require (Pod Security "restricted", quotas)."""

FAULTY_POD: JsonObject = {
    **copy.deepcopy(SOUND_POD),
    "metadata": {
        "name": "slurm-bridge-self-test",
        "annotations": {f"{REQUEST_PREFIX}{_FIELD}": "never created"},
    },
}
"""The same, with a fault for which our webhook refuses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The parts of a pod that show whether it was handed over, as it would have been created."""

    scheduler_name: str = ""
    gates: tuple[str, ...] = ()
    finalizers: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The API server's answer to the creation of one of the pods."""

    pod: Marks | None = None
    """None if it was refused."""
    faults: frozenset[str] = frozenset()
    """The paths of the faults found in it."""
    message: str = ""
    """The refusal, or what went wrong on the way."""


def judge(faulty: Answer, sound: Answer, scheduler_name: str = names.SCHEDULER_NAME) -> str:
    """Return what is wrong; "" if the webhook works."""
    if faulty.pod is not None:
        return (
            "the API server does not call the webhook: a pod that the webhook refuses would have "
            "been created"
        )
    if FAULT not in faulty.faults:
        return f"pods of selected namespaces cannot be created: {faulty.message}"
    if sound.pod is None:
        return f"pods of selected namespaces cannot be created: {sound.message}"
    lacking = not_handed_over(sound.pod, scheduler_name)
    return lacking and f"a test pod was not handed over to Slurm: {lacking}"


def not_handed_over(pod: Marks, scheduler_name: str = names.SCHEDULER_NAME) -> str:
    """Return what a new pod lacks that hands it over to Slurm; "" if nothing."""
    marks = {
        f"spec.schedulerName {scheduler_name}": pod.scheduler_name
        in names.schedulers(scheduler_name),
        f"the gate {names.GATE}": names.GATE in pod.gates,
        f"the finalizer {names.FINALIZER}": names.FINALIZER in pod.finalizers,
        f"the label {names.BRIDGED_LABEL}": names.BRIDGED_LABEL in pod.labels,
        f"the annotation {names.REQUESTER_ANNOTATION}": names.REQUESTER_ANNOTATION
        in pod.annotations,
    }
    lacking = ", ".join(mark for mark, is_set in marks.items() if not is_set)
    return lacking and f"it came out without {lacking}"
