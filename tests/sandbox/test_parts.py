"""What the parts are for: jobs run, accounts count them, ordinary users have ordinary rights."""

import httpx
import pytest

from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from tests.servers import wait_until


def submit_by_hand(sandbox: Sandbox, *, user: str) -> str:
    """An external job, as an administrator would try one; its id."""
    job = {
        "flags": ["EXTERNAL_JOB"],
        "name": "by-hand",
        "user_id": user,
        "group_id": user,
        "current_working_directory": "/",
        "memory_per_node": {"set": True, "number": 100},
    }
    answer = httpx.post(
        f"{sandbox.slurmrestd_url}/slurm/v0.0.44/job/submit",
        json={"job": job},
        headers={"X-SLURM-USER-TOKEN": sandbox.token()},
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["job_id"])


def state_of(sandbox: Sandbox, job: str) -> str:
    return sandbox.run("squeue", "-h", "-j", job, "-t", "all", "-o", "%T %u").strip()


def test_slurm_has_the_same_nodes_as_kubernetes(slurm: Sandbox, control_plane: Sandbox) -> None:
    lines = slurm.run("sinfo", "-h", "-N", "-o", "%N %c %m %G").splitlines()

    assert [f"node-{number} 8 32768 gpu:4" for number in range(4)] == lines
    nodes = control_plane.admin.get("/api/v1/nodes")["items"]
    sizes = {n["metadata"]["name"]: n["status"]["allocatable"] for n in nodes}
    assert set(sizes) == {"node-0", "node-1", "node-2", "node-3", "plain-0"}
    assert ("8", "32Gi", "4") == tuple(
        sizes["node-0"][key] for key in ("cpu", "memory", "nvidia.com/gpu")
    )


def test_an_external_job_submitted_by_hand_runs(slurm: Sandbox) -> None:
    job = submit_by_hand(slurm, user="alice")

    wait_until(lambda: state_of(slurm, job) == "RUNNING alice", 10, sandbox=slurm)
    slurm.run("scancel", job)
    wait_until(lambda: state_of(slurm, job) == "CANCELLED alice", 10, sandbox=slurm)


def test_sacct_knows_the_job_and_its_account(slurm_accounting: Sandbox) -> None:
    job = submit_by_hand(slurm_accounting, user="kubernetes")
    wait_until(lambda: state_of(slurm_accounting, job).startswith("RUNNING"), 10)
    slurm_accounting.run("scancel", job)

    def accounted() -> list[str]:
        columns = "--format=user,account,state"
        return slurm_accounting.run("sacct", "-n", "-P", "-j", job, columns).split("|")

    wait_until(
        lambda: accounted()[2:] and accounted()[2].startswith("CANCELLED"),
        10,
        sandbox=slurm_accounting,
    )
    assert ["kubernetes", "kubernetes"] == accounted()[:2]


def test_a_limit_holds(slurm_accounting: Sandbox) -> None:
    slurm_accounting.run("sacctmgr", "-i", "modify", "user", "bob", "set", "maxjobs=1")
    jobs = [submit_by_hand(slurm_accounting, user="bob") for _ in range(2)]

    def reasons() -> list[str]:
        return [slurm_accounting.run("squeue", "-h", "-j", j, "-o", "%r").strip() for j in jobs]

    wait_until(lambda: reasons() == ["None", "AssocMaxJobsLimit"], 10, sandbox=slurm_accounting)
    slurm_accounting.run("scancel", *jobs)


def test_an_ordinary_user_may_do_what_is_bound_to_the_group(
    control_plane: Sandbox, namespace: str
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    with Api(control_plane.user_kubeconfig("alice", "team-a")) as alice:
        with pytest.raises(ApiError) as refusal:
            alice.get(pods)
        assert refusal.value.status == 403

        binding = ("rolebinding", "team-a", "--clusterrole=edit", "--group=team-a")
        control_plane.kubectl("-n", namespace, "create", *binding)

        wait_until(lambda: may_read(alice, pods), 10, sandbox=control_plane)


def may_read(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiError:
        return False
    return True
