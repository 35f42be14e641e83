"""What a pod says of its lost placeholder, forged: policy `bypass` keeps tenants from writing it, and this is the line behind it."""

from dataclasses import replace

import pytest

from bridge.domain.model import grant
from bridge.domain.model.grant import Grant
from bridge.domain.observation.view import Evidence
from slurmruntime.values import names
from tests.make import lives as build
from tests.make.lives import only_tell

HONEST = Grant(
    name="train", user="alice", group="staff", memory_mib_per_node=1, layout="n1", started_s=1
)


@pytest.mark.attack(
    "have a lost job requested again as root, to which Slurm refuses nothing, by what one's own pod says was granted",
    "nothing is requested again as root, nor without a user, which is root's, too; the pod is kept, and an Event says why",
)
@pytest.mark.parametrize("user", ["root", "Root", "0", "00", "0x0", "+0", " 0", ""])
@pytest.mark.parametrize("is_component", [False, True], ids=["", "component"])
def test_nothing_is_requested_again_as_root(user: str, *, is_component: bool) -> None:
    forged = replace(HONEST, user=user)
    granted = replace(HONEST, also=(forged,)) if is_component else forged
    notes = {
        names.SLUID_ANNOTATION: "sluid-4711",
        names.GRANT_ANNOTATION: grant.encode(build.job().identity, granted),
        names.WHEN_LOST_ANNOTATION: "restore",
    }
    pod = build.bound()
    facts = build.facts(replace(pod, annotations={**pod.annotations, **notes}))

    for evidence in (Evidence.LOST, Evidence.NONE):
        said = only_tell(replace(facts, view=replace(facts.view, evidence=evidence)))

        assert said.reason == "PlaceholderLost"
        assert "says that it was root's" in said.message
