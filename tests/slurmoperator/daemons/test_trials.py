"""A configuration is told as in force once a slurmctld was seen to serve with it, and is never lost to one that it refuses."""

import base64

import msgspec
import pytest

from slurmoperator.daemons.trials import node_digest
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.rendering.trying import WRITE_FILE
from tests.slurmoperator.daemons.peers import PASSWORD, Leaders, changed, controller, part
from tests.virtual_time import VirtualClock, run

pytestmark = pytest.mark.slow

REFUSAL = "error: DefMemPerNode value (4G) is not a valid number"
BAD = "MinJobAge=60\nDefMemPerNode=4G\n"


def digest(leaders: Leaders, name: str) -> str:
    found = leaders.api.of("ConfigMap")[name]["metadata"]["annotations"]
    return str(found["slurm-bridge.dev/configuration"])


def wanted(leaders: Leaders) -> str:
    """The digest of the files that are to come into force, and which write of them it is."""
    written = leaders.api.of("ConfigMap")["site-config-wanted"]["data"][WRITE_FILE]
    return f"{digest(leaders, 'site-config-wanted')} {written}"


def says(leaders: Leaders, *verdicts: tuple[str, str, str]) -> None:
    """Have the side-car say what became of files."""
    lines = "".join(f"configuration {' '.join(verdict)}\n" for verdict in verdicts)
    leaders.api.slurmctlds = {"site-controller-0": lines}


def conf(leaders: Leaders, name: str = "site-config") -> str:
    return str(leaders.api.of("ConfigMap")[name]["data"]["slurm.conf"])


def restarted_for(leaders: Leaders) -> str:
    template = leaders.api.of("StatefulSet")["site-controller"]["spec"]["template"]
    return str(template["metadata"]["annotations"]["slurm-bridge.dev/restarted-for"])


async def in_force(clock: VirtualClock) -> Leaders:
    """A slurmctld serves with its first files."""
    leaders = Leaders(clock)
    leaders.api.put(controller(extraConf="MinJobAge=60\n"))
    await leaders.lead()
    told = leaders.api.condition("Controller", "Configured")
    assert ("Unknown", "NotTried", "there is no pod of slurmctld yet") == told
    says(leaders, ("taken", wanted(leaders), ""))
    await leaders.lead()
    assert ("True", "InForce") == leaders.api.condition("Controller", "Configured")[:2]
    return leaders


def test_what_slurmctld_refuses_is_told_with_the_line_and_its_words_and_what_it_took_is_kept() -> (
    None
):
    async def main(clock: VirtualClock) -> None:
        leaders = await in_force(clock)
        first = wanted(leaders)
        good, before = digest(leaders, "site-config"), restarted_for(leaders)

        changed(leaders.api, "Controller", extraConf=BAD)()
        await leaders.lead()  # the side-car has not seen it
        told = leaders.api.condition("Controller", "Configured")
        assert ("Unknown", "NotTried", "pod site-controller-0 is about to try it") == told
        bad = wanted(leaders)
        assert bad != first
        assert {bad} == {
            nudge["slurm-bridge.dev/configuration"].rpartition(" ")[0]
            for nudge in leaders.api.nudges
        }

        says(leaders, ("taken", first, ""), ("refused", bad, REFUSAL))
        await leaders.lead()
        status, reason, words = leaders.api.condition("Controller", "Configured")
        assert ("False", "Refused") == (status, reason)
        line = "spec.extraConf line 2, DefMemPerNode=4G: slurmctld says: "
        assert words == f"{line}{REFUSAL}; the configuration in force stays (digest {good[:12]})"
        assert "DefMemPerNode" in conf(leaders, "site-config-wanted")
        assert "DefMemPerNode" not in conf(leaders)
        assert (good, before) == (digest(leaders, "site-config"), restarted_for(leaders))

        changed(leaders.api, "Controller", extraConf="MinJobAge=61\n")()
        await leaders.lead()
        better = wanted(leaders)
        says(leaders, ("refused", bad, REFUSAL), ("taken", better, ""))
        await leaders.lead()
        assert ("True", "InForce") == leaders.api.condition("Controller", "Configured")[:2]
        assert "MinJobAge=61" in conf(leaders)

    run(main)


def test_slurmctld_is_restarted_for_what_it_has_taken_only() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await in_force(clock)
        before = restarted_for(leaders)
        changed(leaders.api, "Controller", extraConf="CommunicationParameters=EnableIPv6\n")()
        await leaders.lead()
        assert before == restarted_for(leaders)

        says(leaders, ("taken", wanted(leaders), ""))
        await leaders.lead()
        assert before != restarted_for(leaders)

    run(main)


@pytest.mark.parametrize("then", ["MinJobAge=60\n", "MinJobAge=62\n"])
def test_an_older_word_of_the_same_files_counts_for_nothing(then: str) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await in_force(clock)
        first = wanted(leaders)
        changed(leaders.api, "Controller", extraConf="MinJobAge=61\n")()
        await leaders.lead()
        second = wanted(leaders)
        says(leaders, ("taken", first, ""), ("taken", second, ""))
        await leaders.lead()
        changed(leaders.api, "Controller", extraConf=then)()
        await leaders.lead()
        assert ("Unknown", "NotTried") == leaders.api.condition("Controller", "Configured")[:2]
        assert "MinJobAge=61" in conf(leaders)

    run(main)


def test_files_that_come_back_are_in_force_once_the_last_write_of_them_is() -> None:
    """The kubelet may still bring those in between: then what was said of the first write would be false for a minute."""

    async def main(clock: VirtualClock) -> None:
        leaders = await in_force(clock)
        first, before = wanted(leaders), restarted_for(leaders)
        changed(leaders.api, "Controller", extraConf="MinJobAge=61\n")()
        await leaders.lead()
        between = wanted(leaders)
        leaders.api.nudges.clear()

        changed(leaders.api, "Controller", extraConf="MinJobAge=60\n")()
        await leaders.lead()
        again = wanted(leaders)
        assert first.split()[0] == again.split()[0]
        assert first != again
        told = leaders.api.condition("Controller", "Configured")
        assert ("Unknown", "NotTried", "pod site-controller-0 is about to try it") == told
        assert leaders.api.nudges  # the kubelet is hurried for these, too
        assert "MinJobAge=60" in conf(leaders)
        says(leaders, ("taken", first, ""), ("taken", between, ""))
        await leaders.lead()
        assert ("Unknown", "NotTried") == leaders.api.condition("Controller", "Configured")[:2]

        says(leaders, ("taken", between, ""), ("taken", again, ""))
        await leaders.lead()
        assert ("True", "InForce") == leaders.api.condition("Controller", "Configured")[:2]
        assert before == restarted_for(leaders)

        leaders.api.slurmctlds = {}  # a pod that is replaced takes nothing back
        await leaders.lead()
        assert ("True", "InForce") == leaders.api.condition("Controller", "Configured")[:2]
        assert again == wanted(leaders)

    run(main)


def test_a_pod_is_touched_a_few_times_only_however_long_its_kubelet_takes() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await in_force(clock)
        leaders.api.nudges.clear()
        changed(leaders.api, "Controller", extraConf="MinJobAge=61\n")()
        await leaders.lead(for_s=600)
        assert 3 == len(leaders.api.nudges)

    run(main)


def test_what_slurmctld_makes_of_the_nodes_of_workers_is_known_when_it_has_judged_this_set() -> (
    None
):
    async def main(clock: VirtualClock) -> None:
        leaders = await in_force(clock)
        sets = [
            part("NodeSet", "good", template=..., extraConf="Weight=3"),
            part("NodeSet", "bad", template=..., extraConf="Weight=abc"),
        ]
        for each in sets:
            leaders.api.put(each)
        good, bad = (msgspec.convert(each, NodeSetObject) for each in sets)

        def known() -> list[tuple[bool, str]]:
            found = [leaders.tried.of(each) for each in (good, bad)]
            return [(each.is_known, each.words) for each in found if each is not None]

        await leaders.lead()
        waits = "pod site-controller-0 is about to try it"
        assert [(False, waits), (False, waits)] == known()
        now = wanted(leaders)
        unfit = ("unfit", node_digest(bad), "error: Weight value (abc) is not a valid number")
        says(leaders, ("taken", now, ""), unfit)
        await leaders.lead()
        assert [(False, waits), (False, waits)] == known()

        says(leaders, ("taken", now, ""), unfit, ("judged", now, ""))
        await leaders.lead()
        assert [(True, ""), (True, unfit[2])] == known()
        assert ("True", "InForce") == leaders.api.condition("Controller", "Configured")[:2]

        leaders.api.slurmctlds = {}
        changed(leaders.api, "Controller", extraConf="Nonsense=1\n")()
        leaders.api.change("NodeSet", "bad", extraConf="Weight=5")
        bad = msgspec.convert(leaders.api.of("NodeSet")["bad"], NodeSetObject)
        await leaders.lead()
        assert not known()[1][0]
        assert "Controller site" in known()[1][1]


def slurmdbd_conf(leaders: Leaders, name: str) -> str:
    return base64.b64decode(leaders.api.of("Secret")[name]["data"]["slurmdbd.conf"]).decode()


def digest_of_secret(leaders: Leaders, name: str = "site-accounting-wanted") -> str:
    found = leaders.api.of("Secret")[name]["metadata"]["annotations"]
    return str(found["slurm-bridge.dev/configuration"])


def slurmdbd_says(leaders: Leaders, verdict: str, words: str = "", *, serves: bool = True) -> None:
    """Have the pod of what is wanted now start."""
    last_words = f"configuration {verdict} {digest_of_secret(leaders)} - {words}\n"
    leaders.api.slurmdbd = (last_words, serves)


async def accounting_in_force(clock: VirtualClock) -> Leaders:
    """A slurmdbd serves with its first file."""
    leaders = Leaders(clock)
    leaders.api.put(PASSWORD)
    leaders.api.put(part("Accounting", extraConf="CommitDelay=3\n"))
    await leaders.lead()
    told = leaders.api.condition("Accounting", "Configured")
    assert ("Unknown", "NotTried", "there is no pod of slurmdbd yet") == told

    slurmdbd_says(leaders, "taken", serves=False)
    await leaders.lead()
    words = "slurmdbd of pod site-accounting-0 can read it, but does not serve yet"
    assert ("Unknown", "NotTried", words) == leaders.api.condition("Accounting", "Configured")

    slurmdbd_says(leaders, "taken")
    await leaders.lead()
    assert ("True", "InForce") == leaders.api.condition("Accounting", "Configured")[:2]
    return leaders


def test_what_slurmdbd_refuses_is_told_with_the_line_and_the_last_file_is_kept_beside_it() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await accounting_in_force(clock)
        good = digest_of_secret(leaders)

        changed(leaders.api, "Accounting", extraConf="CommitDelay=3\nCommitDelay=ten\n")()
        await leaders.lead()  # our own check sees this one
        assert "BadInput" == leaders.api.condition("Accounting", "Accepted")[1]
        extra = "CommitDelay=4\nArchiveDir=/nosuch\n"
        changed(leaders.api, "Accounting", extraConf=extra)()
        await leaders.lead()  # the pod is still the one before
        told = leaders.api.condition("Accounting", "Configured")
        assert ("Unknown", "NotTried", "pod site-accounting-0 is about to try it") == told

        refusal = "fatal: Failed to stat the archive directory /nosuch: No such file or directory"
        slurmdbd_says(leaders, "refused", refusal)
        await leaders.lead()
        line = "spec.extraConf line 2, ArchiveDir=/nosuch: slurmdbd says: "
        words = f"{line}{refusal}; the configuration in force stays (digest {good[:12]})"
        assert ("False", "Refused", words) == leaders.api.condition("Accounting", "Configured")
        assert "CommitDelay=4" in slurmdbd_conf(leaders, "site-accounting-wanted")
        assert "CommitDelay=3" in slurmdbd_conf(leaders, "site-accounting")
        assert good == digest_of_secret(leaders, "site-accounting")

        changed(leaders.api, "Accounting", extraConf="CommitDelay=5\n")()
        await leaders.lead()
        slurmdbd_says(leaders, "taken")
        await leaders.lead()
        assert ("True", "InForce") == leaders.api.condition("Accounting", "Configured")[:2]
        assert "CommitDelay=5" in slurmdbd_conf(leaders, "site-accounting")
        assert not leaders.api.nudges

    run(main)


def test_a_file_that_another_slurmdbd_refuses_is_no_longer_in_force() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await accounting_in_force(clock)
        leaders.api.slurmdbd = None  # a pod that is replaced takes nothing back
        await leaders.lead()
        assert ("True", "InForce") == leaders.api.condition("Accounting", "Configured")[:2]

        slurmdbd_says(leaders, "refused", "fatal: no", serves=False)
        await leaders.lead()
        told = leaders.api.condition("Accounting", "Configured")
        assert ("False", "Refused", "slurmdbd says: fatal: no") == told

    run(main)
