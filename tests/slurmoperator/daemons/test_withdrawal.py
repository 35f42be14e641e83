"""What is wanted no more goes, if we made it and it still belongs to its object; nothing else ever does."""

from typing import Any

import pytest

from tests.slurmoperator.daemons.peers import PASSWORD, Leaders, controller, part
from tests.virtual_time import VirtualClock, run

ELSEWHERE = {"external": True, "externalConfig": {"host": "slurm.example.org", "port": 6817}}
OF_CONTROLLER = {
    ("ConfigMap", "site-config-wanted"),
    ("StatefulSet", "site-controller"),
    ("Service", "site-controller"),
    ("Service", "site-controller-internal"),
}


async def with_controller(clock: VirtualClock, **changes: Any) -> Leaders:
    leaders = Leaders(clock)
    leaders.api.put(controller(**changes))
    await leaders.lead()
    assert OF_CONTROLLER <= leaders.api.made()
    assert "True" == leaders.api.condition("Controller", "Ready")[0]
    return leaders


def deleted(leaders: Leaders) -> list[str]:
    return [write for write in leaders.trouble.writes if write.startswith("DELETE")]


def test_a_controller_that_runs_elsewhere_keeps_its_keys_and_its_configuration() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_controller(clock)
        before = leaders.api.made()
        leaders.api.change("Controller", "site", **ELSEWHERE)
        await leaders.lead()

        assert before - OF_CONTROLLER == leaders.api.made()
        assert ("ConfigMap", "site-config") in leaders.api.made()
        assert ("Secret", "site-auth-slurm") in leaders.api.made()
        assert "True" == leaders.api.condition("Controller", "Ready")[0]

        count = len(leaders.trouble.writes)
        await leaders.lead()
        assert [] == leaders.trouble.writes[count:]

    run(main)


def test_an_accounting_that_runs_elsewhere_leaves_nothing_but_its_keys() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api.put(PASSWORD)
        leaders.api.put(part("Accounting"))
        await leaders.lead()
        assert ("StatefulSet", "site-accounting") in leaders.api.made()
        leaders.api.change("Accounting", "site", **ELSEWHERE)
        await leaders.lead()

        keys = {("Secret", "site-auth-slurm"), ("Secret", "site-auth-jwt")}
        assert keys == leaders.api.made() - {("Secret", "mariadb-password")}

    run(main)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"ownerReferences": []}, id="belongs to nobody"),
        pytest.param({"ownerReferences": [{"uid": "x", "controller": True}]}, id="handed over"),
        pytest.param({"managedFields": []}, id="made by another program"),
    ],
)
def test_what_is_not_ours_any_more_stays(change: dict[str, Any]) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_controller(clock)
        stateful_set = leaders.api.of("StatefulSet")["site-controller"]
        leaders.api.put({**stateful_set, "metadata": {**stateful_set["metadata"], **change}})
        leaders.api.change("Controller", "site", **ELSEWHERE)
        await leaders.lead()

        assert {("StatefulSet", "site-controller")} == OF_CONTROLLER & leaders.api.made()

    run(main)


def test_nothing_goes_while_it_is_not_known_what_is_wanted() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_controller(clock)
        before = leaders.api.made()
        for wrong in (
            {**ELSEWHERE, "clusterName": "another"},
            {
                **ELSEWHERE,
                "clusterName": "site",
                "slurmKeyRef": {"name": "lost", "key": "slurm.key"},
            },
            {**ELSEWHERE, "external": "perhaps"},
        ):
            leaders.api.change("Controller", "site", **wrong)
            await leaders.lead()
            assert before <= leaders.api.made(), wrong
        assert [] == deleted(leaders)

    run(main)


def test_a_monitor_goes_when_it_is_wanted_no_more() -> None:
    async def main(clock: VirtualClock) -> None:
        monitored = {"enabled": True, "serviceMonitor": {"enabled": True}}
        leaders = await with_controller(clock, metrics=monitored)
        assert ("ServiceMonitor", "site-controller") in leaders.api.made()
        assert ("True", "Accepted", "") == leaders.api.condition("Controller", "Accepted")
        leaders.api.change("Controller", "site", metrics={"enabled": True})
        await leaders.lead()

        assert ("ServiceMonitor", "site-controller") not in leaders.api.made()
        assert OF_CONTROLLER <= leaders.api.made()

    run(main)


def test_a_cluster_that_knows_no_monitors_gets_all_else_and_a_note() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api.unserved = frozenset({"ServiceMonitor"})
        monitored = {"enabled": True, "serviceMonitor": {"enabled": True}}
        leaders.api.put(controller(metrics=monitored))
        await leaders.lead()

        assert OF_CONTROLLER <= leaders.api.made()
        status, reason, message = leaders.api.condition("Controller", "Accepted")
        assert ("True", "PartlyServed") == (status, reason)
        assert "this cluster does not serve ServiceMonitor of monitoring.coreos.com/v1" in message
        assert "True" == leaders.api.condition("Controller", "Ready")[0]

        leaders.api.unserved = frozenset()
        await leaders.lead()
        assert ("ServiceMonitor", "site-controller") in leaders.api.made()
        assert ("True", "Accepted", "") == leaders.api.condition("Controller", "Accepted")

    run(main)
