"""An API server with the kinds of clusters."""

from collections.abc import Iterator

import pytest

from cluster.objects.definitions import definitions
from cluster.objects.parts import API_VERSION
from sandbox.client import Sandbox
from tests.cluster.examples import BY_NAME, path
from tests.cluster.served import DEADLINE_S, DEFINITIONS, KINDS, answers
from tests.servers import wait_until


@pytest.fixture(scope="module")
def served(control_plane: Sandbox) -> Iterator[Sandbox]:
    """The API server with these kinds; another file may have had them."""
    admin = control_plane.admin
    ours = [each for each in definitions() if each["spec"]["names"]["kind"] in KINDS]
    names = [each["metadata"]["name"] for each in ours]

    def are_gone() -> bool:
        return not any(answers(admin, f"{DEFINITIONS}/{name}") for name in names)

    wait_until(are_gone, DEADLINE_S, sandbox=control_plane)
    for each in ours:
        admin.create(DEFINITIONS, each)
    paths = [path(BY_NAME[kind], "default") for kind in KINDS]
    wait_until(lambda: all(answers(admin, p) for p in paths), DEADLINE_S, sandbox=control_plane)
    yield control_plane
    for kind in KINDS:  # or their definition would wait for them
        for each in admin.get(f"/apis/{API_VERSION}/{BY_NAME[kind].plural}")["items"]:
            if (meta := each["metadata"]).get("finalizers"):
                where = path(BY_NAME[kind], meta["namespace"], meta["name"])
                admin.patch(where, {"metadata": {"finalizers": None}})
    for name in names:
        admin.delete(f"{DEFINITIONS}/{name}")
    wait_until(are_gone, DEADLINE_S, sandbox=control_plane)
