"""An operator that serves some namespaces: of the others' objects it says so, and touches nothing."""

from slurmoperator.rendering.site import NamespaceScope
from tests.slurmoperator.daemons.peers import Leaders, controller
from tests.virtual_time import VirtualClock, run


def test_an_object_elsewhere_is_told_once_and_left_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.served = NamespaceScope(frozenset({"b", "a"}))
        leaders.api.put(controller())
        await leaders.lead()

        status, reason, message = leaders.api.condition("Controller", "Accepted")
        assert (status, reason) == ("False", "NotServed")
        assert "slurm-operator does not serve namespace slurm, only a, b: " in message
        assert not leaders.api.of("StatefulSet")
        assert not leaders.api.of("Secret")

        leaders.served = NamespaceScope(frozenset({"slurm"}))
        await leaders.lead()
        assert "True" == leaders.api.condition("Controller", "Accepted")[0]
        assert leaders.api.of("StatefulSet")

    run(main)
