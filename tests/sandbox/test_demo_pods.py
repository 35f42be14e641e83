"""The demo's pods do on real nodes what KWOK plays on simulated ones."""

import yaml

from sandbox.demo import MANIFEST
from sandbox.demo_pods import on_real_nodes


def test_every_pod_keeps_its_name_and_ends_as_its_annotations_say() -> None:
    documents = list(yaml.safe_load_all(MANIFEST.read_text()))

    real = on_real_nodes(documents)

    assert [each["metadata"]["name"] for each in documents] == [
        each["metadata"]["name"] for each in real
    ]
    scripts = {}
    for document in real:
        pod = document["spec"]["template"] if document["kind"] == "Job" else document
        assert "annotations" not in pod["metadata"]
        (container,) = pod["spec"]["containers"]
        scripts[document["metadata"]["name"]] = container["command"][-1]
    assert "sleep 5 &" in scripts["oops"]
    assert scripts["oops"].endswith("exit 3")
    assert "sleep 3600 &" in scripts["endless"]
    assert scripts["endless"].startswith("trap 'sleep 5; exit' TERM;")
    assert scripts["small"].endswith("exit 0")


def test_sizes_fit_a_small_machine_and_gpus_stay() -> None:
    real = {
        on_real_node["metadata"]["name"]: on_real_node for on_real_node in on_real_nodes(_pods())
    }
    (small,) = real["small"]["spec"]["containers"]
    (gpu,) = real["gpu"]["spec"]["containers"]

    assert small["resources"] == {"requests": {"cpu": "500m", "memory": "64Mi"}}
    assert gpu["resources"]["limits"] == {"nvidia.com/gpu": "2"}


def test_the_manifest_itself_stays_as_it_is() -> None:
    documents = _pods()

    on_real_nodes(documents)

    assert documents == _pods()


def _pods() -> list[dict[str, object]]:
    return list(yaml.safe_load_all(MANIFEST.read_text()))
