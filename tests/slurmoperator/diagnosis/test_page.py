"""One Slurm in pods on one page."""

from slurmoperator.diagnosis import page
from slurmoperator.diagnosis.parts import NamespaceObjects
from tests.slurmoperator.diagnosis.given import job, node, node_set, part, pod, slurm, told

PARTS = (
    part("Controller"),
    part("Accounting"),
    part("RestApi", "api"),
    part("LoginSet", "login"),
    part("Token", "alice"),
)
CONTROL_PODS = (
    pod("slurmctld", "site", "site-controller-0"),
    pod("slurmdbd", "site", "site-accounting-0"),
    pod("slurmrestd", "api", "api-restapi-0"),
    pod("login", "login", "login-0"),
)


def test_everything_that_is_ready_is_on_the_page_and_nothing_is_waited_for() -> None:
    workers = [pod("slurmd", "gpu", f"gpu-{number}", conditions=told("Idle")) for number in (10, 9)]
    found = page.page(slurm(*PARTS, *CONTROL_PODS, node_set(), *workers), "runs")

    assert found.is_ready
    assert () == found.waits
    assert [
        ("Controller/site", "1/1", "26.05"),
        ("Accounting/site", "1/1", "26.05"),
        ("RestApi/api", "1/1", "26.05"),
        ("LoginSet/login", "1/1", "26.05"),
        ("Token/alice", "", ""),
        ("NodeSet/gpu", "2/2", "26.05"),
    ] == [(each.part, each.pods, each.version) for each in found.parts]
    assert {"Ready"} == {each.state for each in found.parts}
    assert [("gpu-9", "idle"), ("gpu-10", "idle")] == [
        (worker.worker, worker.state) for worker in found.workers
    ]
    assert (None, None) == (found.running, found.pending)


def test_what_is_another_slurms_is_not_on_it() -> None:
    others = (
        part("Controller", "other"),
        part("RestApi", "theirs", controllerRef={"name": "other"}),
        part("LoginSet", "theirs", controllerRef={"name": "other"}),
        part("Accounting", "theirs"),
        part("Token", "theirs", jwtKeyRef={"name": "other-jwt", "key": "jwt.key"}),
        node_set("theirs", controllerRef={"name": "other"}),
        pod("slurmd", "theirs", "theirs-0"),
        pod("slurmctld", "other", "other-controller-0"),
    )
    found = page.page(slurm(part("Controller"), *others), "")

    assert ["Controller/site"] == [each.part for each in found.parts]
    assert [] == found.workers


def test_each_part_that_is_not_ready_says_what_for() -> None:
    found = page.page(
        slurm(
            part(
                "Controller",
                "site",
                ("Configured", "False", "BadInput", "line 3: no such parameter"),
            ),
            part("RestApi", "api", ("Ready", "False", "NotReady", "image cannot be pulled")),
            node_set(
                "gpu",
                (
                    "Ready",
                    "False",
                    "ScalingIn",
                    "gpu-1 is removed (scaled in) when its jobs have ended",
                ),
                ("SlurmKnown", "Unknown", "NotRead", "no answer"),
            ),
        ),
        "",
    )

    assert not found.is_ready
    assert [
        "Controller/site: line 3: no such parameter (BadInput)",
        "RestApi/api: image cannot be pulled (NotReady)",
        "NodeSet/gpu: gpu-1 is removed (scaled in) when its jobs have ended (ScalingIn)",
        "NodeSet/gpu: no answer (NotRead)",
    ] == list(found.waits)
    assert [
        ("Controller/site", "BadInput"),
        ("RestApi/api", "NotReady"),
        ("NodeSet/gpu", "ScalingIn"),
    ] == [(each.part, each.state) for each in found.parts]


def test_an_update_shows_both_versions_and_what_a_new_pod_waits_for() -> None:
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}}
    found = page.page(
        slurm(
            part("Controller", "site", ("Ready", "False", "NotReady", "")),
            pod("slurmctld", "site", "site-controller-0"),
            pod(
                "slurmctld",
                "site",
                "site-controller-1",
                image="slurmctld@sha256:1",
                ready=False,
                container=waiting,
            ),
        ),
        "",
    )

    (line,) = found.parts
    assert ("1/2", "26.05, slurmctld@sha256:1") == (line.pods, line.version)
    assert "pod site-controller-1: container slurmctld: ImagePullBackOff: no such tag" == line.why


def test_workers_stand_as_slurm_says_if_it_is_asked_and_as_their_pods_were_told_if_not() -> None:
    ours = "slurm-operator: scaled in"
    pods = [
        pod("slurmd", "gpu", "gpu-0", conditions=told("Idle")),
        pod("slurmd", "gpu", "gpu-1", conditions=told("Mixed", "Drain", reason=ours)),
        pod("slurmd", "gpu", "gpu-2", conditions=told("Idle", "Drain", reason="bad fan")),
        pod("slurmd", "gpu", "gpu-3"),
    ]
    objects = (part("Controller"), node_set(), *pods)

    by_pods = page.page(slurm(*objects), "").workers
    by_slurm = page.page(
        slurm(
            *objects,
            slurm_nodes=[
                node("gpu-0", "MIXED"),
                node("gpu-1", "DOWN", "NOT_RESPONDING", reason="Not responding"),
                node("gpu-2", "ALLOCATED", "DRAIN", reason=ours),
            ],
            queue=[job(1, "gpu-0", "gpu-2"), job(2, "gpu-2"), job(3)],
        ),
        "",
    )

    assert [
        ("idle", None, ""),
        ("draining", None, "by slurm-operator: scaled in"),
        ("drained", None, "not by slurm-operator: bad fan"),
        ("unknown", None, ""),
    ] == [(each.state, each.jobs, each.why) for each in by_pods]
    assert [
        ("mixed", 1, ""),
        ("down", 0, "not by slurm-operator: Not responding"),
        ("draining", 2, "by slurm-operator: scaled in"),
        ("missing", 0, ""),
    ] == [(worker.state, worker.jobs, worker.why) for worker in by_slurm.workers]
    assert (2, 1) == (by_slurm.running, by_slurm.pending)


def test_objects_that_slurm_operator_has_not_seen_or_cannot_read_are_told() -> None:
    found = page.page(
        slurm(
            part("Controller", "site", extraConf=7),
            part("RestApi", "api", generation=2),
            part("LoginSet", "login", ("Accepted", "", "", "")),
        ),
        "",
    )

    assert {"Controller/site": "Ready", "RestApi/api": "Outdated", "LoginSet/login": "NotTold"} == {
        each.part: each.state for each in found.parts
    }


def test_one_line_for_each_slurm() -> None:
    status = {"slurmIdle": 1, "slurmAllocated": 1, "slurmDrain": 1, "slurmDown": 0}
    found = NamespaceObjects(
        parts=[part("Controller", "b"), part("Controller", "a")],
        node_sets=[node_set(controllerRef={"name": "a"}, status=status)],
    )

    first, second = page.summaries(found)

    assert ("a", "Ready", 2, 2, 1, 1, 1) == (
        first.name,
        first.state,
        first.workers,
        first.ready,
        first.idle,
        first.allocated,
        first.drained,
    )
    assert ("b", 0) == (second.name, second.workers)


def test_a_key_that_is_being_replaced_is_on_the_page() -> None:
    step = "key 2, step 1 of 3: every daemon accepts the new key; waiting for pod gpu-9"
    found = page.page(
        slurm(part("Controller", "site", ("SlurmKeyRotated", "False", "Waiting", step))), "runs"
    )

    assert [("Waiting", step)] == [(each.state, each.why) for each in found.parts]
    assert not found.is_ready
