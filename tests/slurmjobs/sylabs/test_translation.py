"""What old manifests mean: every published one, every field, and anything that somebody may write instead."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmjobs.objects.spec import JobOutput
from slurmjobs.objects.status import SlurmJobStatus
from slurmjobs.script import options as o
from slurmjobs.script import read
from slurmjobs.sylabs import container, translation
from slurmjobs.sylabs.job import KINDS, SylabsJob, SylabsKind, SylabsResource
from slurmjobs.sylabs.site import SylabsSite
from slurmjobs.sylabs.spec import ContainerOptions
from slurmruntime.values.faults import MOST_FAULTS
from tests.slurmjobs.sylabs.published import PUBLISHED

OUTPUT = JobOutput(claim_name="scratch", cluster_path="/scratch")
SITE = SylabsSite(
    constraints={"wlm.sylabs.io/cuda=10": "cuda10", "rack=3": "r3", "anything=": ""},
    ssh_rules={"vagrant": "people"},
    output=OUTPUT,
    volumes={
        "/home/vagrant": "kept/cows",
        "/home/docker/": "docker",
        "192.168.1.41:/var/nfsshare": "nfs",
    },
)
_CLAIM = {"persistentVolumeClaim": {"claimName": "mine"}}
SCRIPT = "#!/bin/sh\nsrun hostname\n"
OLD, WLM, IMAGE = KINDS


def job(kind: SylabsKind = OLD, **spec: Any) -> SylabsJob:
    body = {"metadata": {"name": "cow", "namespace": "lab"}, "spec": spec}
    return SylabsResource(kind, SITE).read(json.dumps(body).encode())


def texts(faults: Any) -> list[str]:
    return [fault.text for fault in faults]


def kind_of(manifest: dict[str, Any]) -> SylabsKind:
    wanted = manifest["apiVersion"], manifest["kind"]
    return next(each for each in KINDS if (each.api_version, each.kind) == wanted)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_manifest_is_read_and_its_script_stays_as_it_is(name: str) -> None:
    manifest = PUBLISHED[name].manifest
    found = job(kind_of(manifest), **manifest["spec"])

    assert [PUBLISHED[name].fault] * PUBLISHED[name].only_reviewed == [
        fault.path for fault in found.faults
    ]
    script = manifest["spec"].get("batch")
    if script is not None:
        assert script == found.spec.script
    results = manifest["spec"].get("results")
    expected = [] if results is None else [results.get("from", "")]
    assert expected == [result.source for result in found.spec.results]


@pytest.mark.parametrize(
    ("mount", "target"),
    [
        ({"hostPath": {"path": "/home/vagrant/job-results"}}, ("kept", "cows/job-results")),
        ({"hostPath": {"path": "/home/vagrant/"}}, ("kept", "cows")),
        ({"hostPath": {"path": "/home/vagrant2"}}, None),
        ({"hostPath": {"path": "/home/docker/outputs"}}, ("docker", "outputs")),
        ({"nfs": {"server": "192.168.1.41", "path": "/var/nfsshare/results"}}, ("nfs", "results")),
        ({"nfs": {"server": "192.168.1.42", "path": "/var/nfsshare/results"}}, None),
        ({"persistentVolumeClaim": {"claimName": "mine"}}, ("mine", "")),
    ],
)
def test_results_go_to_the_claim_that_a_volume_stands_for(
    mount: dict[str, Any], target: tuple[str, str] | None
) -> None:
    found = job(WLM, batch=SCRIPT, results={"from": "bar", "mount": mount})

    told = [warning.text for warning in found.warnings]
    if target is None:
        assert () == found.spec.results
        assert ["spec.results: they are not copied"] == [text.split(" and ")[0] for text in told]
    else:
        (result,) = found.spec.results
        assert ("bar", target) == (result.source, (result.to.claim_name, result.to.path))
        assert OUTPUT == found.spec.output
        assert [] == told


def test_without_a_claim_to_read_from_nothing_is_copied() -> None:
    body = {"metadata": {"name": "cow"}, "spec": {"batch": SCRIPT, "results": {"mount": _CLAIM}}}
    found = SylabsResource(WLM, SylabsSite()).read(json.dumps(body).encode())

    assert (None, ()) == (found.spec.output, found.spec.results)
    assert "sylabs.output_claim" in found.warnings[0].text


@pytest.mark.parametrize(
    ("value", "said"),
    [("v10", "v10"), (10, "10"), (10.0, "10"), (10.5, "10.5"), (2**60, str(2**60))],
)
def test_values_of_a_node_selector_may_be_numbers(value: Any, said: str) -> None:
    assert said == translation.label_value(value)
    partition = {"wlm.sylabs.io/partition": value}
    assert {"partition": said} == job(WLM, batch=SCRIPT, nodeSelector=partition).spec.options


def test_a_label_is_what_the_administrator_says_it_is() -> None:
    found = job(
        batch="#!/bin/sh\n#SBATCH --constraint=intel\n",
        nodeSelector={"wlm.sylabs.io/cuda": 10, "rack": 3, "anything": ""},
    )

    assert {"constraint": "intel&cuda10&r3"} == found.spec.options
    assert "spec.nodeSelector" == found.places["spec.options.constraint"]
    assert not found.warnings


def test_a_label_that_says_nothing_to_slurm_is_passed_over_with_a_warning() -> None:
    found = job(
        batch=SCRIPT,
        nodeSelector={"slurm.sylabs.io/containers": "singularity", "workload-manager": "slurm"},
    )

    assert {} == found.spec.options
    (warning,) = texts(found.warnings)
    assert warning.startswith("spec.nodeSelector[slurm.sylabs.io/containers]: it has no effect")
    assert "sylabs.constraints" in warning


def test_what_only_steered_sylabs_own_pods_is_passed_over_with_a_warning() -> None:
    found = job(
        batch=SCRIPT,
        resources={"slurm.sylabs.io/cpu": 2},
        podSecurityContext={"runAsUser": 0},
        timeLimit=20,
    )

    assert {} == found.spec.options
    assert ["spec.resources[slurm.sylabs.io/cpu]", "spec.podSecurityContext", "spec.timeLimit"] == [
        warning.path for warning in found.warnings
    ]


def test_ssh_needs_a_rule_and_no_key_is_read() -> None:
    key = {"secretKeyRef": {"name": "slurm", "key": "key"}}
    mapped = job(batch=SCRIPT, ssh={"user": "vagrant", "key": key})
    strange = job(batch=SCRIPT, ssh={"user": "carol", "password": {"value": "s3cret"}})

    assert ("people", ()) == (mapped.only_rule, mapped.faults)
    (fault,) = texts(strange.faults)
    assert fault.startswith("spec.ssh: slurm-bridge uses no ssh and reads no key")
    assert "{name: carol, match: {kinds: [SlurmJob], namespaces: [lab]}, user: carol}" in fault
    for found in (mapped, strange):
        assert "slurm-key" not in repr(found)
        assert "s3cret" not in repr(found)
        assert "secretKeyRef" not in repr(found)


_NOT_COPIED = (
    "spec.prepare: slurm-bridge does not copy files before a job yet, and without them the job would do something else: "
    "put the files on the cluster and leave this out"
)


def test_all_faults_of_a_manifest_come_at_once() -> None:
    found = job(
        WLM,
        batch=SCRIPT,
        nodeSelector={"a": True, "b": None, "c": ["x"]},
        results={"from": "x", "mount": {"name": "data"}},
        prepare={
            "to": "in",
            "mount": {"hostPath": {"path": "/a"}, "nfs": {"server": "s", "path": "/"}},
        },
    )

    assert [
        "spec.prepare.mount: expected one of hostPath, nfs and persistentVolumeClaim, found hostPath and nfs",
        _NOT_COPIED,
        "spec.nodeSelector[a]: expected text or a number",
        "spec.nodeSelector[b]: expected text or a number",
        "spec.nodeSelector[c]: expected text or a number",
        "spec.results.mount: expected one of hostPath, nfs and persistentVolumeClaim, found none of them",
    ] == texts(found.faults)


def test_an_image_is_run_with_what_it_asks_for() -> None:
    found = job(
        IMAGE,
        image="library://sylabsed/examples/lolcow:latest",
        resources={"nodes": 2, "cpuPerNode": 3, "memPerNode": 500, "wallTime": 61},
    )

    assert found.spec.options == {
        "ntasksPerNode": 1,
        "nodes": 2,
        "cpusPerTask": 3,
        "mem": 500,
        "time": 2,
    }
    asked = read.script(found.spec.script or "", found.spec.options)
    assert not asked.faults
    assert (2, 500) == (asked.options.get(o.TIME), asked.options.get(o.MEM))
    assert "spec.resources.wallTime" == found.places["spec.options.time"]


_WORDS = st.text(
    st.characters(codec="utf-8", min_codepoint=32, exclude_characters="\x7f"), max_size=20
)


@settings(max_examples=30, deadline=None)
@given(
    image=_WORDS.filter(lambda text: text and not text.startswith("-") and text != " "),
    scheme=st.sampled_from(["", "library://"]),
    app=_WORDS,
    binds=st.lists(_WORDS, max_size=2),
)
def test_whatever_is_in_a_field_is_one_word_for_singularity(
    tmp_path_factory: pytest.TempPathFactory, image: str, scheme: str, app: str, binds: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("bin")
    name = scheme + image
    for program in ("srun", "singularity"):
        said = f'#!/bin/sh\nprintf "%s\\0" "$@" >> {folder}/{program}.said\n'
        rest = (
            'while [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n' if program == "srun" else ""
        )
        (folder / program).write_text(said + rest)
        (folder / program).chmod(0o755)
    script = container.script(name, ContainerOptions(app=app, binds=tuple(binds)))
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=environment, check=False, capture_output=True
    )

    assert 0 == done.returncode, done.stderr
    words = _said(folder / "singularity.said")
    options = [f"--app={app}"] if app else []
    run = ["run", *options, *(f"--bind={bind}" for bind in binds)]
    pulled = ["pull", "wlm-7.sif", name]
    assert words == ([*pulled, *run, "wlm-7.sif"] if _is_uri(name) else [*run, name])


def _said(file: Path) -> list[str]:
    return file.read_text("utf-8").removesuffix("\0").split("\0")


def _is_uri(name: str) -> bool:
    return bool(container._URI.match(name))


def test_status_has_their_word_beside_ours() -> None:
    found = job(batch=SCRIPT)

    assert {"status": "Unknown"} == found.status_body(SlurmJobStatus())
    told = found.status_body(SlurmJobStatus(phase="Running", job_id=7))
    assert {"phase": "Running", "jobId": 7, "status": "Running"} == told
    again = SylabsResource(OLD, SITE).read(
        json.dumps({"metadata": {"name": "a"}, "spec": {"batch": SCRIPT}, "status": told}).encode()
    )
    assert SlurmJobStatus(phase="Running", job_id=7) == again.status


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
_SCRIPTS = st.text(min_size=1, max_size=80) | st.lists(
    st.sampled_from(["#!/bin/sh\n", "#SBATCH ", "--exclusive\n", "-N5\n", "--mem=4Q\n", "'", "\0"]),
    min_size=1,
).map("".join)
_VOLUMES = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(max_size=5),
        "hostPath": st.just({"path": "/a"}),
        "nfs": st.just({"server": "s", "path": "/"}),
    },
)
_SPECS: dict[str, st.SearchStrategy[Any]] = {
    OLD.api_version + OLD.kind: st.fixed_dictionaries(
        {"batch": _SCRIPTS},
        optional={
            "nodeSelector": st.dictionaries(st.text(max_size=8), _JSON, max_size=30),
            "resources": st.dictionaries(st.text(max_size=8), st.integers(-(2**63), 2**63 - 1)),
            "results": st.fixed_dictionaries({"mount": _VOLUMES}),
            "ssh": st.fixed_dictionaries(
                {"user": st.text(min_size=1, max_size=256)}, optional={"key": _JSON}
            ),
            "podSecurityContext": st.dictionaries(st.text(max_size=4), _JSON, max_size=2),
            "timeLimit": st.integers(-(2**63), 2**63 - 1),
        },
    ),
    IMAGE.api_version + IMAGE.kind: st.fixed_dictionaries(
        {"image": st.text(st.characters(min_codepoint=33), min_size=1, max_size=20)},
        optional={
            "nodeSelector": st.dictionaries(st.text(max_size=8), _JSON, max_size=5),
            "resources": st.fixed_dictionaries({}, optional={"nodes": st.integers(0, 2**31 - 1)}),
        },
    ),
}


@pytest.mark.parametrize("kind", [OLD, IMAGE], ids=["SlurmJob", "WlmJob"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_odd_input_never_raises_and_never_passes_for_something_else(
    kind: Any, data: st.DataObject
) -> None:
    spec = data.draw(_SPECS[kind.api_version + kind.kind])
    try:
        found = job(kind, **spec)
    except msgspec.DecodeError:
        return  # the API server refuses it: an image's pattern, half a character
    if "batch" in spec:
        assert spec["batch"] == found.spec.script
    wrong = [
        name
        for name, value in spec.get("nodeSelector", {}).items()
        if isinstance(value, bool) or not isinstance(value, str | int | float)
    ]
    told = [fault.path for fault in found.faults if fault.path.startswith("spec.nodeSelector")]
    assert len(told) == len(wrong) or len(found.faults) == MOST_FAULTS
    assert len(found.faults) <= MOST_FAULTS
    assert set(found.spec.options) <= {"partition", "constraint", "ntasksPerNode", "nodes"}


def test_words_of_a_shell_are_quoted() -> None:
    script = container.script("$(reboot).sif", ContainerOptions(host_name="a; rm -rf /"))

    assert ["exec", "srun", "singularity", "run", "--hostname=a; rm -rf /", "$(reboot).sif"] == (
        shlex.split(script.splitlines()[1])
    )
