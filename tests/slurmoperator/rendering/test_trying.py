"""Files are in force once the image's own slurmctld has taken them; what it refuses costs nothing."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from slurmoperator.daemons import trials
from tests.servers import wait_until
from tests.slurmoperator.configuration.given import files, inputs, node_set
from tests.slurmoperator.rendering import trying
from tests.slurmoperator.rendering.trying import ENDS_S, Pod, made

pytestmark = pytest.mark.slow

REFUSED = {
    "DefMemPerNode=4G": "DefMemPerNode value (4G) is not a valid number",
    "MaxMemPerNode=64G": "MaxMemPerNode value (64G) is not a valid number",
    "UnkillableStepTimeout=-1": "UnkillableStepTimeout value (-1) is less than zero",
    "PartitionName=a Nodes=ALL DefMemPerCPU=4G": "DefMemPerCPU value (4G) is not a valid number",
    "PartitionName=a Nodes=ALL MaxNodes=lots": "MaxNodes value (lots) is not a valid number",
    "PartitionName=a Nodes=ALL MaxTime=2days": 'Bad value "2days" for MaxTime',
    "PartitionName=a Nodes=ALL DefaultTime=1h": 'Bad value "1h" for DefaultTime',
    "PartitionName=a Nodes=ALL State=Sideways": 'Bad value "Sideways" for State',
    "PartitionName=a Nodes=ALL Default=ja": '"ja" is not a valid option for "Default"',
    "PartitionName=a Nodes=ALL OverSubscribe=sometimes": 'Bad value "sometimes" for OverSubscribe',
    "PartitionName=a Nodes=ALL\nPartitionName=a Nodes=ALL MaxTime=60": "duplicate entry for partition a",
    "SelectTypeParameters=CR_Foo": "Bad SelectTypeParameter: CR_Foo",
    "PreemptMode=foo": "PreemptMode=foo invalid",
    "PrologFlags=Alloc,Foo": "Invalid PrologFlag: Foo",
    "EnforcePartLimits=maybe": "Bad EnforcePartLimits: maybe",
    "SlurmctldDebug=chatty": "Invalid SlurmctldDebug chatty",
    "PriorityDecayHalfLife=14days": 'Bad value "14days" for PriorityDecayHalfLife',
    "DebugFlags=foo": "Invalid DebugFlag: foo",
    "Licenses=foo:bar": "Invalid configured licenses: foo:bar",
    "JobSubmitPlugins=nosuch": "cannot create job_submit context for job_submit/nosuch",
    "AccountingStorageTRES=gres/gpu": "slurmdbd is required to run with TRES gres/gpu",
    "PartitionName=a Nodes=ALL Topology=flat": "Invalid partition topology",
    "MaxJobCount=0": "MaxJobCount=0, No jobs permitted",
}
"""Lines that end a slurmctld at its start, and its words."""

NODES = {
    "Weight=abc": "Weight value (abc) is not a valid number",
    "Weight=-1": "Weight value (-1) is less than zero",
    "RealMemory=x": "RealMemory value (x) is not a valid number",
    "CPUs=zwei": 'CPUs value "zwei" is not a valid number',
    "TmpDisk=-5": "TmpDisk value (-5) is less than zero",
    "State=nonsense": "invalid state nonsense",
    "Nonsense=1": "Parsing error at unrecognized key: Nonsense",
    "NodeName=other": "unrecognized key: NodeName",
    "Topology=nosuch:x": "Invalid node topology specified nosuch:x",
}
"""What a slurmd ends at, or is drained for, if it is told so of its node, and slurmctld's words."""
GOOD_NODES = (
    "Weight=2",
    "Weight=3 RealMemory=1000 CPUs=2",
    "Gres=nic:fast:2,foo:2G",
    "Features=a&b,c|d,[e]",
    r"Reason=a#b\\c Weight=2",
    "State=DRAIN Reason=new",
)

OTHER_FILES = (
    ("cgroup.conf", "", "Nonsense=1\n", "Parsing error at unrecognized key: Nonsense"),
    ("cgroup.conf", "", "ConstrainCores=maybe\n", '"maybe" is not a valid option'),
    ("topology.yaml", "", "nonsense: 1\n", "Failed to initialize topology plugin"),
    ("topology.yaml", "", "][", "Failed to load topology.yaml"),
    (
        "topology.conf",
        "TopologyPlugin=topology/tree\n",
        "SwitchName=s1 Nodes=n[1-\n",
        "Invalid node name (n[1-)",
    ),
    ("resources.yaml", "", "nonsense: [\n", "Something wrong with reading resources.yaml"),
    ("job_submit.lua", "JobSubmitPlugins=lua\n", "syntax error", "job_submit.lua:1: "),
)
"""Files beside slurm.conf, lines with which they are read, a text that ends a slurmctld at its start, and its words."""

OTHER = made("MaxArraySize=77") | {"cgroup.conf": "CgroupPlugin=disabled\n"}
"""Files that slurmctld takes; `cgroup.conf` is put first."""


@pytest.fixture
def pod() -> Iterator[Pod]:
    with trying.pod() as found:
        yield found


def with_lines(lines: str) -> dict[str, str]:
    """The files with lines that our own check may refuse: here slurmctld is to."""
    found = made()
    found["slurm.conf"] += f"{lines}\n"
    return found


def test_what_slurmctld_refuses_is_told_in_its_words_and_never_put_in_force(pod: Pod) -> None:
    (pod.folder / "up").touch()
    pod.bring("wanted", made())
    with pod.running():
        assert ("taken", "") == pod.waits_for(1)
        before = (pod.folder / "etc" / "slurm.conf").read_text()
        for number, (lines, words) in enumerate(REFUSED.items(), start=2):
            pod.bring("wanted", with_lines(lines))
            verdict, said = pod.waits_for(number)
            assert verdict == "refused", (lines, said)
            assert words in said, (lines, said)
            assert str(pod.folder / "run") not in said
            assert before == (pod.folder / "etc" / "slurm.conf").read_text()
        assert not (pod.folder / "reconfigured").exists()
        pod.bring("wanted", with_lines("MaxArraySize=77"))
        assert ("taken", "") == pod.waits_for(len(REFUSED) + 2)
    assert pod.has("MaxArraySize=77")
    assert 1 == len((pod.folder / "reconfigured").read_text().splitlines())


def test_the_files_beside_slurm_conf_are_tried_too(pod: Pod) -> None:
    (pod.folder / "up").touch()
    pod.bring("wanted", made())
    with pod.running():
        assert ("taken", "") == pod.waits_for(1)
        for number, (name, lines, text, words) in enumerate(OTHER_FILES, start=2):
            pod.bring("wanted", {**with_lines(lines), name: text})
            verdict, said = pod.waits_for(number)
            assert verdict == "refused", (name, text, said)
            assert words in said, (name, text, said)
        there = pod.folder / "etc"
        assert not (there / "topology.yaml").exists()
        assert "Nonsense" not in (there / "cgroup.conf").read_text()


def test_a_pod_that_starts_afresh_has_the_last_files_that_slurmctld_took(pod: Pod) -> None:
    pod.bring("proven", with_lines("MaxArraySize=77"))
    pod.bring("wanted", with_lines("MaxJobCount=0"))
    with pod.running():
        verdict, said = pod.waits_for(1)
        assert ("refused", True) == (verdict, "MaxJobCount=0" in said)
        wait_until(lambda: pod.has("MaxArraySize=77"), ENDS_S)
        assert not pod.has("MaxJobCount=0")
        (pod.folder / "up").touch()
        pod.bring("wanted", with_lines("MaxJobCount=5"))
        assert ("taken", "") == pod.waits_for(2)


def test_without_such_files_slurmctld_starts_when_they_are_mended(pod: Pod) -> None:
    pod.bring("wanted", with_lines("MaxJobCount=0"))
    with pod.running():
        assert "refused" == pod.waits_for(1)[0]
        assert not pod.has("ClusterName")
        pod.bring("wanted", with_lines("MaxJobCount=5"))
        wait_until(lambda: pod.has("MaxJobCount=5"), ENDS_S)
        assert 1 == len(pod.told())  # nothing is in force yet
        (pod.folder / "up").touch()
        assert ("taken", "") == pod.waits_for(2)
    assert not (pod.folder / "reconfigured").exists()


def test_what_was_said_of_files_says_nothing_of_a_later_write_of_the_same(pod: Pod) -> None:
    """Else files would count as in force that a kubelet brings only after others, a minute later."""
    first, second = made(), with_lines("MaxArraySize=77")
    (pod.folder / "up").touch()
    pod.bring("wanted", first)
    with pod.running():
        assert ("taken", "") == pod.waits_for(1)
        assert pod.takes_the_last_write()
        assert {} == pod.unfit(1)
        for number, now in enumerate((first, second, first, second, second), start=2):
            pod.bring("wanted", now)
            assert ("taken", "") == pod.waits_for(number)
            assert pod.takes_the_last_write()
            assert pod.has("MaxArraySize=77") is (now is second)
            assert {} == pod.unfit(number)
    # Files that are in force already cost slurmctld nothing.
    assert 3 == len((pod.folder / "reconfigured").read_text().splitlines())


def test_files_that_come_back_count_only_once_slurmctld_has_them_again(pod: Pod) -> None:
    """Others were put in between, and what slurmctld made of these two was not heard."""
    lost = "slurm_reconfigure error: Socket timed out on send/recv operation"
    (pod.folder / "up").touch()
    pod.bring("wanted", made())
    with pod.running():
        assert ("taken", "") == pod.waits_for(1)
        (pod.folder / "refusal").write_text(lost)
        (pod.folder / "differs").touch()
        pod.bring("wanted", with_lines("MaxArraySize=77"))
        wait_until(lambda: pod.has("MaxArraySize=77"), ENDS_S)
        pod.bring("wanted", made())
        wait_until(lambda: not pod.has("MaxArraySize=77"), ENDS_S)
        wait_until(lambda: 2 == len((pod.folder / "reconfigured").read_text().splitlines()), ENDS_S)
        assert 1 == len(pod.told())
        (pod.folder / "differs").unlink()
        assert ("taken", "") == pod.waits_for(2)


def test_files_that_are_exchanged_while_others_are_put_are_not_mixed_with_them(pod: Pod) -> None:
    """Else the first ones would stay in force under the digest of the later ones, and nobody would put these."""
    (pod.folder / "up").touch()
    pod.bring("wanted", made())
    with pod.running():
        assert ("taken", "") == pod.waits_for(1)
        with pod.holding(OTHER):
            pod.bring("wanted", made())
        assert ("taken", "") == pod.waits_for(3)
        assert pod.takes_the_last_write()
    assert pod.serves_with(made())
    assert 2 == len((pod.folder / "reconfigured").read_text().splitlines())


def test_files_that_a_killed_side_car_had_half_put_are_taken_back_if_refused(pod: Pod) -> None:
    (pod.folder / "up").touch()
    pod.bring("wanted", made())
    (pod.folder / "refusal").write_text("slurm_reconfigure error: no")
    with pod.running() as process:
        assert ("taken", "") == pod.waits_for(1)
        with pod.holding(OTHER):
            os.killpg(process.pid, signal.SIGKILL)
    with pod.running():
        assert "refused" == pod.waits_for(2)[0]
    assert pod.serves_with(made())


def test_a_trial_that_cannot_be_run_is_no_refusal(pod: Pod) -> None:
    pod.program("slurmctld", "#!/bin/sh\necho 'fatal: no such machine' >&2\nexit 1\n")
    (pod.folder / "up").touch()
    pod.bring("wanted", made())
    with pod.running():
        assert ("taken", "") == pod.waits_for(1)
        pod.bring("wanted", with_lines("MaxArraySize=77"))
        assert ("taken", "") == pod.waits_for(2)
    assert pod.has("MaxArraySize=77")


def test_what_only_the_running_slurmctld_refuses_is_taken_back(pod: Pod) -> None:
    (pod.folder / "up").touch()
    pod.bring("wanted", made())
    with pod.running():
        assert ("taken", "") == pod.waits_for(1)
        (pod.folder / "refusal").write_text("slurm_reconfigure error: no")
        pod.bring("wanted", with_lines("MaxArraySize=77"))
        assert ("refused", "at its reconfigure: slurm_reconfigure error: no") == pod.waits_for(2)
        assert not pod.has("MaxArraySize=77")


def test_a_reconfigure_whose_answer_is_lost_is_judged_by_what_slurmctld_has(pod: Pod) -> None:
    """Seen where a standby's name is not known: slurmctld takes the files, and the command does not wait for it."""
    lost, proven = "slurm_reconfigure error: Socket timed out on send/recv operation", "77"
    (pod.folder / "up").touch()
    pod.bring("proven", with_lines(f"MaxArraySize={proven}"))
    pod.bring("wanted", made())
    with pod.running():
        assert ("taken", "") == pod.waits_for(1)
        (pod.folder / "refusal").write_text(lost)
        pod.bring("wanted", with_lines("MaxArraySize=78"))
        assert ("taken", "") == pod.waits_for(2)
        (pod.folder / "differs").touch()
        pod.bring("wanted", with_lines("MaxArraySize=79"))
        wait_until(lambda: pod.has("MaxArraySize=79"), ENDS_S)
        (pod.folder / "run" / "put-at").write_text("0")
        verdict, said = pod.waits_for(3)
        assert ("refused", True) == (verdict, "did not serve with it" in said)
        assert pod.has(f"MaxArraySize={proven}")


def test_a_trial_reaches_nobody_and_leaves_nothing(pod: Pod) -> None:
    """With what slurmdbd knows, nodes in slurm.conf itself, a key of ours in a script's path, and programs that slurmctld runs."""
    lines = (
        "AccountingStorageEnforce=associations,qos\nAccountingStorageTRES=gres/gpu\nPriorityWeightTRES=CPU=1,GRES/gpu=2\n"
        f"SlurmctldPrimaryOnProg={pod.folder}/bin/touched\nSuspendProgram={pod.folder}/bin/touched\nSuspendTime=1\n"
        "CommunicationParameters=block_null_hash AuthInfo=cred_expire=100\n"
        "NodeName=DEFAULT CPUs=4\nNodeName=old[1-3] NodeAddr=192.0.2.[1-3] Port=7000\n"
        'PartitionName=a Nodes=ALL AllowQos=high QOS=normal TRESBillingWeights="CPU=1.0,GRES/gpu=2.0"\n'
    )
    pod.program("touched", f"#!/bin/sh\ntouch {pod.folder}/touched\n")
    found = with_lines(lines) | {"check.sh": "#!/bin/sh\n"}
    found["slurm.conf"] = found["slurm.conf"].replace(
        "accounting_storage/none", "accounting_storage/slurmdbd"
    )
    found["slurm.conf"] += "PrologSlurmctld=/etc/slurm/check.sh\n"
    pod.bring("wanted", found)
    (pod.folder / "up").touch()
    with pod.running():
        assert ("taken", "") == pod.waits_for(1)
    assert not (pod.folder / "touched").exists()
    assert not (pod.folder / "run" / "trial").exists()


def test_nodes_that_slurmctld_would_refuse_are_told_and_cost_nobody_else(pod: Pod) -> None:
    said = (*NODES, *GOOD_NODES)
    sets = {conf: node_set(f"n{at}", extraConf=conf) for at, conf in enumerate(said)}
    by_digest = {trials.node_digest(each): conf for conf, each in sets.items()}
    good = [sets[each] for each in GOOD_NODES]
    (pod.folder / "up").touch()
    with pod.running():
        pod.bring("wanted", dict(files(inputs(*good))))
        assert ("taken", "") == pod.waits_for(1)
        assert {} == pod.unfit(1)
        pod.bring("wanted", dict(files(inputs(*sets.values(), extraConf="MaxArraySize=77"))))
        assert ("taken", "") == pod.waits_for(2)
        found = {by_digest[digest]: words for digest, words in pod.unfit(2).items()}
    assert NODES.keys() == found.keys(), found
    for conf, words in NODES.items():
        assert words in found[conf]
        assert "localhost" not in found[conf]
    assert pod.has("MaxArraySize=77")


def listens(group: int) -> set[str]:
    """Return the addresses, in hexadecimal digits, at which programs of a process group can be reached."""
    inodes = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getpgid(int(process.name)) == group:
                inodes |= {str(each.readlink()) for each in (process / "fd").iterdir()}
    found = set()
    for kind, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == state and f"socket:[{words[9]}]" in inodes:
                found.add(words[1].partition(":")[0])
    return found


def test_while_it_is_tried_nothing_listens_where_others_reach_it(pod: Pod) -> None:
    (pod.folder / "up").touch()
    seen: set[str] = set()
    with pod.running() as process:
        for number in range(1, 7):
            lines = f"CommunicationParameters=EnableIPv6\nMaxArraySize={number}00\n"
            pod.bring("wanted", with_lines(lines + "SlurmctldPort=6817-6820\n"))
            while len(pod.told()) < number:
                seen |= listens(process.pid)
            assert ("taken", "") == pod.told()[-1]
    assert seen, "no trial was seen"
    loopback = {"0100007F", "00000000000000000000000001000000"}
    assert seen <= loopback
