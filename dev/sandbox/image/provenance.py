"""How an image was built, as an attestation: https://slsa.dev/spec/v1.0/provenance."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from slurmruntime.model.objects import JsonDict

_BUILD = "https://slurm-bridge.dev/build/dockerfile/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The tree that was built."""

    commit: str
    is_clean: bool
    """Whether it equals the commit."""


def statement(
    image: str,
    digest: str,
    *,
    stage: str,
    source: Source,
    base: str,
    materials: Mapping[str, str],
    began: datetime,
    ended: datetime,
) -> JsonDict:
    """Return the statement about one image.

    Args:
        image: its name.
        digest: of its manifest, `sha256:…`.
        stage: of the Dockerfile.
        source: what was built.
        base: the image it was built on.
        materials: further files that went in -> their SHA256.
        began: when the build began.
        ended: when it ended.
    """
    algorithm, _, hexadecimal = digest.partition(":")
    commit = {"uri": "git+slurm-bridge", "digest": {"gitCommit": source.commit}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": image, "digest": {algorithm: hexadecimal}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD,
                "externalParameters": {
                    "stage": stage,
                    "baseImage": base,
                    "isClean": source.is_clean,
                },
                "resolvedDependencies": [
                    commit,
                    *(
                        {"name": name, "digest": {"sha256": sha256}}
                        for name, sha256 in sorted(materials.items())
                    ),
                ],
            },
            "runDetails": {
                "builder": {"id": f"{_BUILD}#make-release"},
                "metadata": {"startedOn": began.isoformat(), "finishedOn": ended.isoformat()},
            },
        },
    }
