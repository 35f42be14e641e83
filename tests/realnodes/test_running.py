"""A pod that Slurm placed runs in a real container, and both systems tell the truth about it."""

import shutil
from pathlib import Path

import pytest

from sandbox import assets
from sandbox.api import ApiError
from sandbox.assets import Asset, AssetName
from sandbox.client import Sandbox
from sandbox.realnodes import images
from sandbox.realnodes.images import Image
from tests.realnodes.containers import Containers, running
from tests.servers import wait_until


def test_a_pod_runs_where_slurm_put_it_and_its_exit_code_is_in_sacct(
    real: Sandbox, containers: Containers
) -> None:
    containers.create("hello", "echo out; echo err >&2; exit 3")

    pod = containers.ends("hello")

    assert pod["spec"]["nodeName"] in real.instance.options.real_node_names
    assert ("FAILED", "3:0") == containers.accounted("hello")
    node = real.run(
        "sacct", "-X", "-n", "-P", "-o", "NodeList", "-j", containers.job_of("hello")
    ).strip()
    assert node == pod["spec"]["nodeName"]
    logs = real.kubectl("-n", containers.namespace, "logs", "hello")  # API server to kubelet
    assert sorted(logs.split()) == ["err", "out"]


def test_a_command_runs_inside_and_its_exit_code_comes_back(
    real: Sandbox, containers: Containers
) -> None:
    containers.create("inside", "sleep 600")
    containers.runs("inside")

    said = real.kubectl("-n", containers.namespace, "exec", "inside", "--", "hostname")

    assert said == "inside\n"


def test_pods_of_two_nodes_reach_each_other_and_the_api_server(
    real: Sandbox, containers: Containers
) -> None:
    serve = "echo pong > /tmp/index.html; exec httpd -f -p 80 -h /tmp"
    containers.create("server", serve, node="real-0")
    address = containers.runs("server")["status"]["podIP"]
    ask = f"until wget -q -O - http://{address}/; do sleep 0.2; done; wget -q -O - --no-check-certificate https://10.0.0.1/version"

    containers.create("client", ask, node="real-1", activeDeadlineSeconds=30)

    assert containers.ends("client")["status"]["phase"] == "Succeeded"
    assert "pong\n" in real.kubectl("-n", containers.namespace, "logs", "client")


def test_a_container_is_killed_at_its_memory_limit_and_slurm_says_so(
    containers: Containers,
) -> None:
    eat = "exec dd if=/dev/zero of=/dev/null bs=200M count=2"
    containers.create("eater", eat, limits={"memory": "32Mi", "cpu": "1"})

    containers.ends("eater")

    assert ("OUT_OF_MEMORY", "0:125") == containers.accounted("eater")


@pytest.mark.real_all
def test_a_pod_is_held_to_its_limits_and_others_beside_it_do_not_notice(
    real: Sandbox, containers: Containers
) -> None:
    (unlimited,) = running(["exit 0"])["containers"]
    with pytest.raises(ApiError, match="expected a limit that equals the request"):
        containers.create("unlimited", containers=[{**unlimited, "resources": {}}])
    containers.create("beside", "sleep 600", node="real-0")
    began = containers.runs("beside")["status"]["containerStatuses"][0]
    spin = "end=$(($(date +%s)+3)); while [ $(date +%s) -lt $end ]; do :; done"
    was_held = "cat /sys/fs/cgroup/cpu/cpu.stat /sys/fs/cgroup/cpu.stat 2> /dev/null | grep -q 'nr_throttled [1-9]'"
    eat = "exec dd if=/dev/zero of=/dev/null bs=200M count=2"
    little = {"cpu": "200m", "memory": "32Mi"}

    containers.create(
        "greedy", f"{spin}; {was_held} || exit 7; {eat}", node="real-0", limits=little
    )

    containers.ends("greedy")
    assert ("OUT_OF_MEMORY", "0:125") == containers.accounted("greedy")
    assert containers.get("beside")["status"]["containerStatuses"][0] == began


def test_a_container_finds_the_devices_it_was_given(real: Sandbox, containers: Containers) -> None:
    containers.create("gpu", 'echo "$NVIDIA_VISIBLE_DEVICES"', limits={"nvidia.com/gpu": "1"})

    containers.ends("gpu")

    given = real.kubectl("-n", containers.namespace, "logs", "gpu").strip()
    assert given in ("gpu-0", "gpu-1")
    assert ("COMPLETED", "0:0") == containers.accounted("gpu")


def test_a_killed_kubelet_comes_back_and_its_pods_run_on(
    real: Sandbox, containers: Containers
) -> None:
    containers.create("steady", "sleep 600", node="real-1")
    began = containers.runs("steady")["status"]["containerStatuses"][0]
    old = real.on_node("real-1", "cat", "/run/kubelet.pid")

    real.end_daemon("real-1", "kubelet")

    wait_until(lambda: real.on_node("real-1", "cat", "/run/kubelet.pid") != old, 30, sandbox=real)
    wait_until(lambda: _kubelet_answers(real), 30, sandbox=real)
    assert containers.get("steady")["status"]["containerStatuses"][0] == began


def _kubelet_answers(real: Sandbox) -> bool:
    try:
        real.admin.request("GET", "/api/v1/nodes/real-1/proxy/healthz")
    except ValueError:  # it says `ok`, which is no JSON
        return True
    except Exception:  # noqa: BLE001  # not yet
        return False
    return True


def test_an_image_made_of_a_folder_runs_on_every_node(
    real: Sandbox, containers: Containers, tmp_path: Path
) -> None:
    node = assets.where([AssetName.NODE])[AssetName.NODE]
    assert isinstance(node, Asset)
    assert node.root is not None
    (tmp_path / "files" / "bin").mkdir(parents=True)
    shutil.copy(node.root / "usr" / "bin" / "busybox", tmp_path / "files" / "bin" / "sh")
    image = Image(name=images.full_name("local/tool:1"), entrypoint=("/bin/sh", "-c"), user="65534")
    made = tmp_path / "tool.tar"
    images.archive(made, image, images.layer_of_folder(tmp_path / "files"))

    real.load_image(made)

    for name in real.instance.options.real_node_names:
        (usual,) = running(["exit 4"])["containers"]
        ours = {"image": "local/tool:1", "imagePullPolicy": "Never", "args": usual["command"][2:]}
        del usual["command"]
        containers.create(f"made-{name}", node=name, containers=[{**usual, **ours}])
    for name in real.instance.options.real_node_names:
        containers.ends(f"made-{name}")
        assert ("FAILED", "4:0") == containers.accounted(f"made-{name}")
