"""The chart as helm renders it."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "deploy/chart"

REQUIRED = Path(__file__).with_name("required.yaml")
"""What every installation has to say."""

Manifest = dict[str, Any]


class HelmError(Exception):
    """Helm refused the values; what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """What a release consists of."""

    text: str
    manifests: tuple[Manifest, ...]

    def of_kind(self, kind: str) -> dict[str, Manifest]:
        """By name; names within one namespace, as a release has one but for a RoleBinding."""
        return {m["metadata"]["name"]: m for m in self.manifests if m["kind"] == kind}

    def config(self, name: str, key: str) -> str:
        """A file in a ConfigMap."""
        content: str = self.of_kind("ConfigMap")[name]["data"][key]
        return content


def render(
    helm: Path,
    values: Mapping[str, Any] | None = None,
    *,
    release: str = "slurm-bridge",
    namespace: str = "slurm-bridge",
    kube_version: str = "1.36.4",
) -> Rendered:
    """`helm template`, with the one value that has no default.

    Raises:
        HelmError: the values are refused.
    """
    done = subprocess.run(
        [
            *(str(helm), "template", release, str(CHART), "--namespace", namespace),
            *("--kube-version", kube_version),
            *("--values", str(REQUIRED), "--values", "-"),
        ],
        input=yaml.safe_dump(dict(values or {})),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise HelmError(done.stderr)
    manifests = tuple(m for m in yaml.safe_load_all(done.stdout) if m)
    return Rendered(text=done.stdout, manifests=manifests)


def template(
    helm: Path, chart: Path, values: Mapping[str, Any], *, release: str, namespace: str
) -> str:
    """`helm template` of any chart, with these values.

    Raises:
        HelmError: the values are refused.
    """
    done = subprocess.run(
        (str(helm), "template", release, str(chart), "--namespace", namespace, "--values", "-"),
        input=yaml.safe_dump(dict(values)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise HelmError(done.stderr)
    return done.stdout
