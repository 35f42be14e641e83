"""The client for programs without an event loop."""

import pytest

from sandbox.client import Sandbox
from slurmclient import Added, NotFound, sync


def test_a_script_reads_streams_and_watches_without_an_event_loop(
    slurm_accounting: Sandbox,
) -> None:
    token = slurm_accounting.token()
    with sync.Client(slurm_accounting.slurmrestd_url, token=token) as slurm:
        names = {node.name for node in slurm.run(slurm.nodes.list())}
        assert {"node-0", "node-1"} <= names
        assert names == {node.name for node in slurm.iterate(slurm.nodes.iter())}
        for event in slurm.iterate(slurm.nodes.watch()):
            assert isinstance(event, Added)
            break
        with pytest.raises(NotFound):
            slurm.run(slurm.nodes.get("nope"))


def test_an_invalid_url_leaves_no_thread_behind() -> None:
    with pytest.raises(ValueError, match="expected http://HOST:PORT"), sync.Client("nonsense"):
        pass
