"""slurm-operator on real kubelets: a Slurm of pods from three objects, and workers that leave only when they are idle."""

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from sandbox.errors import SandboxError
from sandbox.image.slurm import SlurmImage
from sandbox.operator.serving import SLURM_CONF
from slurmcli import plugin
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

LEAVES_S = 120.0
IN_FORCE_S = 30.0
"""Ten seconds on a machine that has nothing else to do."""
KUBELET_S = 70
"""A kubelet brings changed files within a minute or so if nobody hurries it."""
ROOTS = {"slurmd", "login"}
CONFINED = {
    "runAsNonRoot": True,  # without a uid: the kubelet takes the image's, and refuses root
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
OTHERS = {"login": (0, "OpenSSH_"), "slurmdbd": (1, "fatal: StorageType must be specified")}
"""How a container ends, and what it prints, when its program is asked for its version and does not print Slurm's.
slurmdbd reads its file first.
"""


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    with slurm_in_pods(slurm_images) as found:
        yield found


def test_three_objects_are_a_slurm_whose_workers_leave_only_when_idle(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    wait_until(lambda: in_pods.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n", STARTS_S)
    assert ["workers-0", "workers-1"] == sorted(in_pods.run("srun", "-N2", "hostname").split())
    wait_until(
        lambda: in_pods.condition("nodesets", "workers", "SlurmKnown")[0] == "True",
        STARTS_S,
        sandbox=sandbox,
    )

    jobs = {name: in_pods.submit(name) for name in in_pods.workers()}
    wait_until(lambda: in_pods.run("squeue", "-h", "-o", "%t").split() == ["R", "R"], STARTS_S)
    sandbox.kubectl("-n", NAMESPACE, "scale", "nodeset/workers", "--replicas=1")
    (going,) = wait_until(in_pods.drained, LEAVES_S, sandbox=sandbox)
    assert {*jobs} == {*in_pods.workers()}
    (staying,) = {*jobs} - {going}
    in_words = {going: "draining", staying: "mixed"}
    page = wait_until(
        lambda: shown if states(shown := kubectl_slurm(in_pods, "cluster")) == in_words else {},
        LEAVES_S,
        sandbox=sandbox,
    )
    assert "running" == page["operator"]
    waits = f"{going} is removed (scaled in) when its jobs have ended"
    assert any("NodeSet/workers: " in wait and waits in wait for wait in page["waits"]), page
    assert all("26" in part["version"] for part in page["parts"]), page
    why = kubectl_slurm(in_pods, "why", going)
    assert ("is draining", "by slurm-operator: scaled in") == (why["state"], why["why"])
    assert "is not ready" == kubectl_slurm(in_pods, "why", "nodeset/workers")["state"]

    wait_until(lambda: in_pods.workers() == sorted({*jobs} - {going}), LEAVES_S, sandbox=sandbox)
    wait_until(
        lambda: {"COMPLETED"} == {in_pods.state(job) for job in jobs.values()},
        LEAVES_S,
        sandbox=sandbox,
    )
    wait_until(
        lambda: in_pods.condition("nodesets", "workers", "Ready")[0] == "True",
        LEAVES_S,
        sandbox=sandbox,
    )
    wait_until(
        lambda: {(job, "COMPLETED") for job in jobs.values()} <= in_pods.accounted(), LEAVES_S
    )


def kubectl_slurm(in_pods: InPods, *words: str) -> dict[str, Any]:
    """What `kubectl slurm` says without asking Slurm."""
    env = {**in_pods.sandbox.env, "SLURM_JWT": None}
    done = CliRunner().invoke(plugin.app(), [*words, "-n", NAMESPACE, "-o", "json"], env=env)
    return dict(json.loads(done.stdout))


def states(page: dict[str, Any]) -> dict[str, str]:
    """How each worker on the page stands in Slurm."""
    return {worker["worker"]: worker["state"] for worker in page["workers"]}


def test_a_login_pod_reaches_the_workers(in_pods: InPods) -> None:
    login = in_pods.log_in("login", in_pods.login_image)

    assert login("exec", "srun", "hostname").strip() in in_pods.workers()
    ask = "exec 3<> /dev/tcp/login/22; head -c 8 <&3"
    assert "SSH-2.0-" == in_pods.run("bash", "-c", ask)
    assert "there is a sssd.conf, but no sssd" in login("logs")
    key = login("exec", "cat", "/etc/ssh/ssh_host_ed25519_key.pub")
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/login-ssh-host-keys"
    kept = in_pods.sandbox.admin.get(path)["data"]["ssh_host_ed25519_key.pub"]
    assert key == base64.b64decode(kept).decode()


def test_a_login_pod_has_users_from_sssd(in_pods: InPods, login_with_sssd: SlurmImage) -> None:
    in_pods.sandbox.load_image(login_with_sssd.archive)
    login = in_pods.log_in("users", login_with_sssd.name)

    def known() -> str:
        try:
            return login("exec", "getent", "--service=sss", "passwd", "games")
        except SandboxError:  # sssd has just started
            return ""

    assert wait_until(known, STARTS_S, sandbox=in_pods.sandbox).startswith("games:*:5:")
    assert "no sssd" not in login("logs")
    assert login("exec", "srun", "hostname").strip() in in_pods.workers()


def test_each_image_starts_as_the_user_it_names(
    in_pods: InPods, slurm_images: tuple[SlurmImage, ...]
) -> None:
    containers: list[dict[str, Any]] = [
        {
            "name": image.daemon,
            "image": image.name,
            "imagePullPolicy": "Never",
            "args": ["-V"],
            "securityContext": {} if image.daemon in ROOTS else CONFINED,
        }
        for image in slurm_images
    ]
    sandbox, path = in_pods.sandbox, f"/api/v1/namespaces/{NAMESPACE}/pods"
    spec = {"restartPolicy": "Never", "containers": containers}
    sandbox.admin.create(path, {"metadata": {"name": "versions"}, "spec": spec})
    wait_until(
        lambda: sandbox.admin.get(f"{path}/versions")["status"]["phase"] in ("Succeeded", "Failed"),
        STARTS_S,
        sandbox=sandbox,
    )

    for container_status in sandbox.admin.get(f"{path}/versions")["status"]["containerStatuses"]:
        daemon = container_status["name"]
        said = sandbox.kubectl("-n", NAMESPACE, "logs", "versions", "-c", daemon)
        code, text = OTHERS.get(daemon, (0, "slurm-wlm 26.05."))
        assert code == container_status["state"]["terminated"]["exitCode"], (daemon, said)
        assert text in said


def test_kubectl_drain_waits_for_the_job_of_a_worker_and_then_ends(in_pods: InPods) -> None:
    """After the test above: one worker is left."""
    sandbox = in_pods.sandbox
    (worker,) = wait_until(in_pods.workers, LEAVES_S, sandbox=sandbox)
    where = f"/api/v1/namespaces/{NAMESPACE}/pods/{worker}"
    pod = sandbox.admin.get(where)
    kube_node, uid = pod["spec"]["nodeName"], pod["metadata"]["uid"]
    job = in_pods.submit(worker)
    wait_until(lambda: in_pods.state(job) == "RUNNING", STARTS_S, sandbox=sandbox)
    kubectl = (str(sandbox.instance.bin / "kubectl"), "drain", kube_node)
    only = ("--pod-selector=app.kubernetes.io/name=slurmd", f"--timeout={LEAVES_S:g}s")
    drain = subprocess.Popen(
        (*kubectl, *only, "--ignore-daemonsets", "--delete-emptydir-data"), env=sandbox.env
    )
    try:
        wait_until(lambda: worker in in_pods.drained(), LEAVES_S, sandbox=sandbox)
        assert "RUNNING" == in_pods.state(job)
        assert "deletionTimestamp" not in sandbox.admin.get(where)["metadata"]
        assert 0 == drain.wait(LEAVES_S)
    finally:
        drain.kill()
        sandbox.kubectl("uncordon", kube_node)
    assert "COMPLETED" == in_pods.state(job)

    def is_replaced() -> bool:
        """By a worker with the lowest number that is free, which may be another."""
        workers = in_pods.workers()
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        uids = {sandbox.admin.get(f"{pods}/{name}")["metadata"]["uid"] for name in workers}
        return len(uids) == 1 and uid not in uids and not {*workers} & {*in_pods.drained()}

    wait_until(is_replaced, LEAVES_S, sandbox=sandbox)


def test_another_template_waits_for_jobs_and_a_broken_one_is_told_and_taken_back(
    in_pods: InPods,
) -> None:
    """After the test above: one worker is left; Slurm keeps the node of the one that went, drained."""
    sandbox, (worker,) = in_pods.sandbox, in_pods.workers()
    where = f"/api/v1/namespaces/{NAMESPACE}/pods/{worker}"
    path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/nodesets/workers"
    uid = sandbox.admin.get(where)["metadata"]["uid"]
    image = (sandbox.admin.get(path)["spec"].get("slurmd") or {}).get("image")

    def is_updated() -> bool:
        of_all = [in_pods.condition("nodesets", "workers", each) for each in ("Updated", "Ready")]
        return {"True"} == {status for status, _ in of_all} and worker not in in_pods.drained()

    wait_until(is_updated, STARTS_S, sandbox=sandbox)
    job = in_pods.submit(worker)
    wait_until(lambda: in_pods.state(job) == "RUNNING", STARTS_S, sandbox=sandbox)
    template = {"metadata": {"annotations": {"example.test/rack": "7"}}}
    sandbox.admin.patch(path, {"spec": {"template": template}})
    wait_until(lambda: worker in in_pods.drained(), LEAVES_S, sandbox=sandbox)
    assert "to be replaced" in in_pods.run("sinfo", "-h", "-R", "-o", "%E")
    assert ("RUNNING", uid) == (in_pods.state(job), sandbox.admin.get(where)["metadata"]["uid"])
    wait_until(
        lambda: in_pods.run("sinfo", "-h", "-n", worker, "-o", "%t") == "idle\n" and is_updated(),
        LEAVES_S,
        sandbox=sandbox,
    )
    assert "COMPLETED" == in_pods.state(job)
    metadata = sandbox.admin.get(where)["metadata"]
    assert ("7", False) == (metadata["annotations"]["example.test/rack"], metadata["uid"] == uid)

    sandbox.admin.patch(path, {"spec": {"slurmd": {"image": "example.test/slurmd:typo"}}})
    wait_until(
        lambda: "typo" in in_pods.condition("nodesets", "workers", "Ready")[1],
        LEAVES_S,
        sandbox=sandbox,
    )
    sandbox.admin.patch(path, {"spec": {"slurmd": {"image": image}}})
    wait_until(is_updated, LEAVES_S, sandbox=sandbox)
    # By sbatch: an srun beside slurmctld that has to queue was seen never to hear of its allocation.
    job = in_pods.submit(worker)
    wait_until(lambda: in_pods.state(job) == "COMPLETED", LEAVES_S, sandbox=sandbox)
    selected = ("-l", "app.kubernetes.io/name=slurmd", "-o", "name")
    kept = sandbox.kubectl("-n", NAMESPACE, "get", "controllerrevisions", *selected)
    assert 1 == len(kept.split())


def test_a_file_that_slurmctld_refuses_costs_nothing(in_pods: InPods) -> None:
    """slurm-operator does not know which plugins an image has, so only slurmctld can refuse this one."""
    sandbox, worker = in_pods.sandbox, in_pods.workers()[0]
    path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/controllers/site"
    pod = f"/api/v1/namespaces/{NAMESPACE}/pods/site-controller-0"

    def daemons() -> tuple[str, set[str]]:
        found = sandbox.admin.get(pod)
        ids = {
            container_status["containerID"]
            for container_status in found["status"]["containerStatuses"]
        }
        return found["metadata"]["uid"], ids

    def set_besides(extra: str) -> None:
        sandbox.admin.patch(path, {"spec": {"extraConf": SLURM_CONF + extra}})

    def configured() -> tuple[str, str]:
        return in_pods.condition("controllers", "site", "Configured")

    def has(setting: str) -> bool:
        return setting in " ".join(in_pods.run("scontrol", "show", "config").split())

    wait_until(lambda: configured()[0] == "True", STARTS_S, sandbox=sandbox)
    before = daemons()
    job = wait_until(lambda: in_pods.submit(worker), STARTS_S, sandbox=sandbox)
    wait_until(lambda: in_pods.state(job) == "RUNNING", STARTS_S, sandbox=sandbox)
    set_besides("MaxArraySize=66\nPriorityType=priority/typo\n")
    wait_until(lambda: configured()[0] == "False", IN_FORCE_S, sandbox=sandbox)
    number = len(SLURM_CONF.splitlines()) + 2
    told = configured()[1]
    assert f"spec.extraConf line {number}, PriorityType=priority/typo: slurmctld says: " in told
    assert "fatal: failed to initialize priority plugin" in told, told
    after = in_pods.submit(worker)
    wait_until(lambda: in_pods.state(after) == "COMPLETED", LEAVES_S, sandbox=sandbox)
    assert "COMPLETED" == in_pods.state(job)
    assert before == daemons()
    assert not has("MaxArraySize = 66")

    # A pod that starts afresh: nothing is left of its state, either.
    sandbox.kubectl("-n", NAMESPACE, "delete", "pod", "site-controller-0")
    wait_until(lambda: has("MaxArraySize = "), STARTS_S, sandbox=sandbox)
    assert not has("MaxArraySize = 66")
    assert ("False", told) == configured()

    before = daemons()
    set_besides("MaxArraySize=77\n")
    wait_until(lambda: configured()[0] == "True", IN_FORCE_S, sandbox=sandbox)
    assert has("MaxArraySize = 77")
    assert before == daemons()


@pytest.mark.parametrize("pause_s", [0.2, 3.0])
def test_a_file_that_comes_back_is_in_force_when_the_condition_says_so(
    in_pods: InPods, pause_s: float
) -> None:
    """A kubelet may bring the one in between, and the next one a minute later."""
    sandbox = in_pods.sandbox
    path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/controllers/site"
    wanted = f"/api/v1/namespaces/{NAMESPACE}/configmaps/site-config-wanted"

    def is_configured() -> bool:
        found = sandbox.admin.get(path)
        conditions = {each["type"]: each for each in found["status"]["conditions"]}
        seen = conditions["Configured"]["observedGeneration"], conditions["Configured"]["status"]
        return seen == (found["metadata"]["generation"], "True")

    def set_size(size: int) -> None:
        line = f"MaxArraySize={size}\n"
        sandbox.admin.patch(path, {"spec": {"extraConf": SLURM_CONF + line}})
        written = lambda: line in sandbox.admin.get(wanted)["data"]["slurm.conf"]  # noqa: E731
        wait_until(written, STARTS_S, sandbox=sandbox)

    set_size(81)
    wait_until(is_configured, IN_FORCE_S, sandbox=sandbox)
    set_size(82)
    time.sleep(pause_s)
    set_size(81)
    wait_until(is_configured, IN_FORCE_S, sandbox=sandbox)
    for _ in range(KUBELET_S):
        assert in_pods.run("grep", "-x", "MaxArraySize=81", "/etc/slurm/slurm.conf")
        time.sleep(1)


def test_a_node_that_slurmctld_refuses_costs_no_worker(in_pods: InPods) -> None:
    """What slurmd would end at, again and again."""
    sandbox = in_pods.sandbox
    (worker, *_) = workers = wait_until(in_pods.workers, STARTS_S, sandbox=sandbox)
    path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/nodesets/workers"
    conf = sandbox.admin.get(path)["spec"].get("extraConf", "")
    where = f"/api/v1/namespaces/{NAMESPACE}/pods/{worker}"
    uid = sandbox.admin.get(where)["metadata"]["uid"]

    def configured() -> tuple[str, str]:
        return in_pods.condition("nodesets", "workers", "Configured")

    def arguments() -> str:
        found = sandbox.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        pods = (each["spec"]["containers"] for each in found if each["metadata"]["name"] == worker)
        return next((" ".join(pod[0]["args"]) for pod in pods), "")

    def is_updated() -> bool:
        of_all = ("Updated", "Ready", "Configured")
        return {"True"} == {in_pods.condition("nodesets", "workers", each)[0] for each in of_all}

    wait_until(is_updated, STARTS_S, sandbox=sandbox)
    job = in_pods.submit(worker)
    sandbox.admin.patch(path, {"spec": {"extraConf": f"{conf} Weight=abc"}})
    wait_until(lambda: configured()[0] == "False", IN_FORCE_S, sandbox=sandbox)
    assert "Weight=abc: slurmctld says: error: Weight value (abc) is not" in configured()[1]
    wait_until(lambda: in_pods.state(job) == "COMPLETED", LEAVES_S, sandbox=sandbox)
    assert workers == in_pods.workers()
    assert not {*workers} & {*in_pods.drained()}
    assert uid == sandbox.admin.get(where)["metadata"]["uid"]
    assert "True" == in_pods.condition("controllers", "site", "Configured")[0]

    sandbox.admin.patch(path, {"spec": {"extraConf": f"{conf} Features=mended"}})
    wait_until(lambda: "mended" in arguments() and is_updated(), LEAVES_S, sandbox=sandbox)
    assert uid != sandbox.admin.get(where)["metadata"]["uid"]


def test_a_file_that_slurmdbd_refuses_costs_nothing(in_pods: InPods) -> None:
    """slurm-operator does not know which folders a pod has, so only slurmdbd can refuse this one."""
    sandbox = in_pods.sandbox
    path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/accountings/site"

    def set_extra(extra: str) -> None:
        sandbox.admin.patch(path, {"spec": {"extraConf": extra}})

    def configured() -> tuple[str, str]:
        return in_pods.condition("accountings", "site", "Configured")

    def has(setting: str) -> bool:
        where = ("-n", NAMESPACE, "exec", "site-accounting-0", "-c", "slurmdbd")
        return setting in sandbox.kubectl(*where, "--", "cat", "/etc/slurm/slurmdbd.conf").split()

    def serves() -> bool:
        return bool(in_pods.run("sacctmgr", "-n", "-P", "show", "cluster"))

    def is_ready() -> bool:
        return in_pods.condition("accountings", "site", "Ready")[0] == "True"

    wait_until(lambda: configured()[0] == "True", STARTS_S, sandbox=sandbox)
    set_extra("CommitDelay=3\nArchiveDir=/nosuch\n")
    wait_until(lambda: configured()[0] == "False", STARTS_S, sandbox=sandbox)
    told = configured()[1]
    says = "spec.extraConf line 2, ArchiveDir=/nosuch: slurmdbd says: "
    assert told.startswith(f"{says}fatal: Failed to stat the archive directory /nosuch"), told
    assert "the configuration in force stays" in told
    wait_until(is_ready, STARTS_S, sandbox=sandbox)
    wait_until(serves, STARTS_S, sandbox=sandbox)
    assert not has("CommitDelay=3")
    assert ("False", told) == configured()

    set_extra("CommitDelay=4\n")
    wait_until(lambda: configured()[0] == "True", STARTS_S, sandbox=sandbox)
    assert has("CommitDelay=4")
    wait_until(serves, STARTS_S, sandbox=sandbox)
