"""How an operation becomes a request in one version of the API."""

from datetime import UTC, datetime

import pytest

from slurmclient import TooOld
from slurmclient.api.operations import OPERATIONS

MOMENT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_values_are_written_as_slurm_reads_them() -> None:
    path, query = OPERATIONS["slurm_get_jobs_state"].target(45, {}, {"job_id": [7, "8_1"]})
    assert ("/slurm/v0.0.45/jobs/state/", [("job_id", "7"), ("job_id", "8_1")]) == (path, query)
    _, query = OPERATIONS["slurm_get_nodes"].target(45, {}, {"update_time": MOMENT, "flags": None})
    assert [("update_time", "1700000000")] == query


def test_a_name_cannot_leave_its_place_in_the_path() -> None:
    path, _ = OPERATIONS["slurm_get_node"].target(45, {"node_name": "a/b?c=d%"}, {})
    assert "/slurm/v0.0.45/node/a%2Fb%3Fc%3Dd%25" == path


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_mean_another_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="slurm_delete_node: expected a node_name"):
        OPERATIONS["slurm_delete_node"].target(45, {"node_name": name}, {})


@pytest.mark.parametrize("name", ["slurm_get_job", "slurm_delete_job", "slurmdb_get_job"])
def test_an_older_version_names_jobs_by_their_ids_only(name: str) -> None:
    sluid = {"job_id": "sD0NM8E7PHY500"}
    path, _ = OPERATIONS[name].target(45, sluid, {})
    assert path.endswith("/job/sD0NM8E7PHY500")
    with pytest.raises(TooOld, match=r"by its id before v0\.0\.45.*got the sluid sD0NM8E7PHY500"):
        OPERATIONS[name].target(44, sluid, {})
    assert OPERATIONS[name].target(44, {"job_id": "7_3"}, {})[0].endswith("/job/7_3")


def test_an_older_version_lacks_operations_and_parameters() -> None:
    with pytest.raises(TooOld, match=r"needs v0\.0\.45, the server speaks v0\.0\.44"):
        OPERATIONS["slurm_get_conf"].target(44, {}, {})
    with pytest.raises(TypeError, match="no parameter 'user'; it has update_time, flags"):
        OPERATIONS["slurm_get_jobs"].target(45, {}, {"user": "alice"})
