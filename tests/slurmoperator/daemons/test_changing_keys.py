"""Keys are made anew once no daemon has an old one, and not before."""

import pytest

from tests.slurmoperator.daemons.peers import PASSWORD, Leaders, part
from tests.virtual_time import VirtualClock, run

KEYS = ("site-auth-slurm", "site-auth-jwt")
DAEMONS = ("site-controller", "site-accounting")


@pytest.mark.parametrize("running", ["", *DAEMONS, "workers"])
def test_keys_are_made_anew_when_all_daemons_are_gone(running: str) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        api = leaders.api
        for each in (PASSWORD, part("Accounting"), part("Controller", prologScriptRefs=...)):
            api.put(each)
        if running == "workers":
            api.put(part("NodeSet", extraConf=..., ssh=...))
        await leaders.lead()
        before = [api.of("Secret")[name]["data"] for name in KEYS]

        def changed() -> None:
            if running == "workers":
                ready = {"status": {"readyReplicas": 1}}
                api.put({**part("NodeSet", extraConf=..., ssh=...), **ready})
            for name in KEYS:
                api.remove("Secret", name)
            for name in set(DAEMONS) - {running}:
                api.remove("StatefulSet", name)

        await leaders.lead(then={1.0: changed})
        after = api.of("Secret")
        if running:
            assert not set(KEYS) & after.keys()
            assert "daemons run with its key" in api.condition("Controller", "Accepted")[2]
            return
        assert all(after[name]["data"] not in before for name in KEYS)
        assert "True" == api.condition("Controller", "Ready")[0]
        assert "True" == api.condition("Accounting", "Ready")[0]

    run(main)
