"""Which of the chart's admission policies are in force, of what the API server lists."""

from collections.abc import Sequence
from dataclasses import dataclass

from slurmruntime.model.objects import JsonObject

_CHART = "slurm-bridge"
_LONGEST_PREFIX = 40
"""Characters of the release's name in the names of its objects."""


@dataclass(frozen=True, slots=True)
class PolicyBindings:
    """The policies in force."""

    bindings: frozenset[str]
    """Suffixes of the names of the bindings."""
    selecting_terms: int
    direct_denies: bool


def policy_bindings(
    policies: Sequence[JsonObject], bindings: Sequence[JsonObject]
) -> PolicyBindings:
    """Return those whose policy exists."""
    called = {policy["metadata"]["name"] for policy in policies}
    bound = {
        _suffix(binding): binding for binding in bindings if binding["spec"]["policyName"] in called
    }
    selector = bound.get("bypass", {}).get("spec", {}).get("matchResources", {})
    terms = selector.get("namespaceSelector", {})
    count = len(terms.get("matchLabels") or ()) + len(terms.get("matchExpressions") or ())
    actions = bound.get("direct", {}).get("spec", {}).get("validationActions", ["Deny"])
    return PolicyBindings(
        frozenset(bound),
        selecting_terms=max(count - 1, 0) if terms else 1,
        direct_denies="Deny" in actions,
    )


def _suffix(ours: JsonObject) -> str:
    """Return an object's name without the release's prefix, which the chart gives to all (`slurm-bridge.name`)."""
    metadata = ours["metadata"]
    release = metadata["labels"].get("app.kubernetes.io/instance", "")
    prefix = release if _CHART in release else f"{release}-{_CHART}"
    name: str = metadata["name"]
    return name.removeprefix(f"{prefix[:_LONGEST_PREFIX].removesuffix('-')}-")
