"""A tenant with very many objects of slurm-operator's, beside one of somebody else."""

from typing import Any

import pytest
from typing_extensions import override

from slurmoperator.objects.own.slurm_cluster import API_VERSION, KIND, PLURAL
from tests.make.apiserver import Manifest
from tests.slurmoperator.clusters.peers import SIX_LINES, ClusterLeaders, WithCluster
from tests.slurmoperator.daemons.peers import AppliedTo, Leaders, part, secret
from tests.virtual_time import VirtualClock, run

MANY = 200
SIGNING = secret("site-auth-jwt", jwt_key=b"k" * 64)


class Watched(AppliedTo):
    """Remembers who is served."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.paths: list[str] = []

    @override
    async def request(self, method: str, path: str, **sent: Any) -> bytes:
        self.paths.append(path)
        return await super().request(method, path, **sent)


class WatchedClusters(Watched, WithCluster):
    """The same with SlurmClusters."""


def served_before(paths: list[str]) -> int:
    """How many objects of the tenant's are asked for before the first of somebody else's."""
    first = next(at for at, path in enumerate(paths) if "/namespaces/slurm/" in path)
    return len({path for path in paths[:first] if path.endswith("/status")})


@pytest.mark.attack(
    "create very many Tokens or RestApis, and change them, so that slurm-operator does not come to other tenants' objects",
    "namespaces have their turn one after the other",
)
def test_a_crowd_of_parts_holds_up_nobody_else() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api = api = Watched(clock, leaders.trouble)
        leaders.token_users = {"*": "*"}
        for number in range(MANY):
            api.put(_in_namespace("mallory", part("Token", f"t-{number}", secretRef=...)))
        for each in (SIGNING, part("Token", "theirs")):
            api.put(each)

        await leaders.lead(for_s=1)

        assert served_before(api.paths) <= 8

    run(main)


@pytest.mark.attack(
    "create very many SlurmClusters, so that other tenants' are not made",
    "namespaces have their turn one after the other",
)
def test_a_crowd_of_clusters_holds_up_nobody_else() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = ClusterLeaders(clock)
        leaders.api = api = WatchedClusters(clock, leaders.trouble)
        for number in range(MANY):
            name = f"c-{number}"
            meta = {"name": name, "namespace": "mallory", "uid": f"uid-{name}", "generation": 1}
            body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": SIX_LINES}
            api._store(f"/apis/{API_VERSION}/namespaces/mallory/{PLURAL}/{name}", body)
        api.create_cluster(SIX_LINES)

        await leaders.lead(for_s=1)

        assert served_before(api.paths) <= 2

    run(main)


def _in_namespace(namespace: str, made: Manifest) -> Manifest:
    made["metadata"]["namespace"] = namespace
    return made
