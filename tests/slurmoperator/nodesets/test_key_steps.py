"""Another step of the daemons' key is another template: workers get it when their jobs have ended."""

import msgspec

from slurmoperator.keys.mounts import MountingSpec, mounted_steps
from slurmoperator.nodesets.revisions import storing
from slurmoperator.objects.nodeset import NodeSetObject
from tests.make.apiserver import Manifest
from tests.slurmoperator.nodesets.peers import KEY, SETTLED_S, Operator, job, node_set
from tests.virtual_time import VirtualClock, run


def steps_of(pod: Manifest) -> set[int]:
    spec = {"volumes": pod["spec"].get("volumes", [])}
    found = msgspec.json.decode(msgspec.json.encode(spec), type=MountingSpec)
    return {*mounted_steps(found, KEY)}


def test_workers_get_the_next_step_and_a_busy_one_after_its_job() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "gpu-1")
        operator.key_step = 1
        await operator.lead(for_s=4 * SETTLED_S)

        assert {"gpu-0": {1}, "gpu-1": set()} == {
            name: steps_of(each) for name, each in operator.api.pods.items()
        }
        assert "RUNNING" == operator.slurm.jobs[1].state
        assert await newest(operator) == {"uid-gpu": 1}

        del operator.slurm.jobs[1]
        await operator.lead(for_s=4 * SETTLED_S)
        assert [{1}, {1}] == [steps_of(pod) for pod in operator.api.pods.values()]
        assert "True" == operator.api.condition("gpu", "Updated")["status"]
        count = len(operator.trouble.writes)
        await operator.lead(for_s=SETTLED_S)
        assert [] == operator.trouble.writes[count:]

    run(main)


def test_the_step_is_in_the_revision_before_it_is_in_any_worker() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.key_step = 4
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        posted = [write for write in operator.trouble.writes if write.startswith("POST")]
        kinds = [each.rpartition("/")[2] for each in posted]
        assert kinds.index("controllerrevisions") < kinds.index("pods")
        assert await newest(operator) == {"uid-gpu": 4}
        assert [{4}] == [steps_of(pod) for pod in operator.api.pods.values()]

    run(main)


def test_without_a_step_a_template_is_what_it_was() -> None:
    found = msgspec.convert(node_set(replicas=1), type=NodeSetObject)

    assert storing.content(found) == storing.content(found, 0)
    assert storing.content(found) != storing.content(found, 1)
    assert b"slurmKeyStep" not in storing.content(found)


async def newest(operator: Operator) -> dict[str, int]:
    return await storing.newest_key_steps(operator.api, "slurm")  # type: ignore[arg-type]  # all it calls
