"""Names as this machine resolves them."""

from bridge.settings.slurm import Slurm
from slurmcli import resolving


def test_names_are_resolved_here() -> None:
    settings = Slurm.model_validate(
        {
            "url": "http://localhost:6820,http://[::1]:6820",
            "controller_host": "127.0.0.1,nowhere.invalid,a..b.invalid",
        }
    )

    found = {host.name: host for host in resolving.hosts(settings)}

    assert {"127.0.0.1", "::1"} & set(found["localhost"].addresses)
    assert ["127.0.0.1"] == found["127.0.0.1"].addresses
    assert () == found["nowhere.invalid"].addresses
    assert {("slurm.url", ()), ("slurm.controller_host", ())} == {
        (host.setting, tuple(host.as_it_is)) for host in found.values()
    }
