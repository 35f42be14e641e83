"""Say in words which namespaces are never handed to Slurm, whatever their labels."""

ALWAYS_EXCLUDED = "kube-system"
"""The chart's default of `excludedNamespaces`, for callers who may not read what is set."""


def no_effect(namespace: str, *, release: str) -> str:
    """Say why a namespace's label has no effect: it is excluded, or slurm-bridge's own.

    release: slurm-bridge's own namespace.
    """
    whose = "slurm-bridge's own" if namespace == release else "excluded (excludedNamespaces)"
    return f"namespace {namespace} is {whose}: its label has no effect"
