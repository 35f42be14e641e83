"""Our own annotations written wrongly: refused on pods, told on owners, and nothing starts one by one for it."""

import pytest

from sandbox.api import ApiError
from slurmruntime.values import names
from tests.integration.worlds import Worlds, condition, is_gated, job_manifest, played
from tests.servers import wait_until

OURS = "slurm-bridge.dev/"
OLD = "slinky.slurm.net/account"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("gang", "yes", "expected true or false"),
        ("gnag", "true", f"did you mean {names.GANG_ANNOTATION}?"),
        ("pod-group-sizes", "4", f"did you mean {names.POD_GROUP_SIZE_ANNOTATION}?"),
        ("on-member-failure", "stop", "expected end"),
    ],
)
def test_a_pod_with_a_wrong_key_or_value_is_refused(
    worlds: Worlds, key: str, value: str, words: str
) -> None:
    with pytest.raises(ApiError) as refused:
        worlds.submit("wrong", annotations={f"{OURS}{key}": value})

    assert f"metadata.annotations[{OURS}{key}]" in refused.value.message
    assert words in refused.value.message


def test_a_key_of_a_later_release_stops_no_pod(worlds: Worlds) -> None:
    worlds.submit("newer", annotations={f"{OURS}colour": "blue", **played(seconds=1)})

    worlds.await_phase("newer", "Succeeded")


def test_a_gang_whose_owner_is_written_wrongly_waits_until_it_is_mended(worlds: Worlds) -> None:
    manifest = job_manifest("train", annotations=played(seconds=1))
    manifest["metadata"]["annotations"] = {names.GANG_ANNOTATION: "yes"}
    worlds.create_job(manifest)
    name = worlds.await_one_pod("job-name=train", is_gated)["metadata"]["name"]

    told = worlds.await_pod(name, lambda pod: condition(pod).get("reason") == "AnnotationInvalid")
    assert is_gated(told)
    assert "expected true or false, found 'yes'" in condition(told)["message"]
    assert "found 'yes'" in worlds.await_event(name, "AnnotationInvalid")

    job = f"/apis/batch/v1/namespaces/{worlds.namespace}/jobs/train"
    worlds.sandbox.admin.patch(job, {"metadata": {"annotations": {names.GANG_ANNOTATION: "true"}}})
    worlds.await_phase(name, "Succeeded", deadline_s=120)


def test_what_has_no_effect_on_an_owner_is_told_by_an_event(worlds: Worlds) -> None:
    manifest = job_manifest("old", annotations=played(seconds=1))
    manifest["metadata"]["annotations"] = {OLD: "project-a", f"{OURS}colour": "blue"}
    worlds.create_job(manifest)

    def is_told() -> bool:
        found = worlds.sandbox.admin.get(
            f"/api/v1/namespaces/{worlds.namespace}/events", fieldSelector="involvedObject.kind=Job"
        )["items"]
        said = " ".join(each["message"] for each in found if each["reason"] == "AnnotationIgnored")
        return OLD in said and f"{OURS}colour" in said

    wait_until(is_told, 60, sandbox=worlds.sandbox)


def test_placed_pods_are_kept_from_autoscalers_and_a_users_own_word_stays(worlds: Worlds) -> None:
    key = "karpenter.sh/do-not-disrupt"
    worlds.submit("plain")
    worlds.submit("own", annotations={key: "false"})

    plain, own = (
        worlds.await_phase(name, "Running")["metadata"]["annotations"] for name in ("plain", "own")
    )
    assert names.AUTOSCALERS.items() <= plain.items()
    assert "false" == own[key]
    assert "false" == own["cluster-autoscaler.kubernetes.io/safe-to-evict"]
