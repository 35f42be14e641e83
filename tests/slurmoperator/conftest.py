"""An API server with the kinds of clusters."""

from collections.abc import Iterator
from http import HTTPStatus

import pytest

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmoperator.objects.definitions import definitions
from slurmoperator.objects.parts import API_VERSION
from tests.servers import wait_until
from tests.slurmoperator.examples import BY_NAME, path
from tests.slurmoperator.served import DEADLINE_S, DEFINITIONS, KINDS, answers


@pytest.fixture(scope="module")
def served(control_plane: Sandbox) -> Iterator[Sandbox]:
    """The API server with these kinds; another file may have had them."""
    admin = control_plane.admin
    ours = [
        definition for definition in definitions() if definition["spec"]["names"]["kind"] in KINDS
    ]
    names = [each["metadata"]["name"] for each in ours]

    def are_gone() -> bool:
        return not any(answers(admin, f"{DEFINITIONS}/{name}") for name in names)

    wait_until(are_gone, DEADLINE_S, sandbox=control_plane)
    for our in ours:
        admin.create(DEFINITIONS, our)
    paths = [path(BY_NAME[kind], "default") for kind in KINDS]
    wait_until(lambda: all(answers(admin, p) for p in paths), DEADLINE_S, sandbox=control_plane)
    yield control_plane

    def are_let_go() -> bool:
        """Their definitions would wait for them. The API server answers 429 while it prepares their storage."""
        try:
            for kind in KINDS:
                for item in admin.get(f"/apis/{API_VERSION}/{BY_NAME[kind].plural}")["items"]:
                    if (meta := item["metadata"]).get("finalizers"):
                        where = path(BY_NAME[kind], meta["namespace"], meta["name"])
                        admin.patch(where, {"metadata": {"finalizers": None}})
        except ApiError as error:
            if error.status != HTTPStatus.TOO_MANY_REQUESTS:
                raise
            return False
        return True

    wait_until(are_let_go, DEADLINE_S, sandbox=control_plane)
    for name in names:
        admin.delete(f"{DEFINITIONS}/{name}")
    wait_until(are_gone, DEADLINE_S, sandbox=control_plane)
