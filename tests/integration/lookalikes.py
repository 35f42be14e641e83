"""Jobs that carry the identity of a placeholder of ours: a spare one, or one that only looks like ours."""

from typing import Any

import httpx

from bridge.domain.model import batch, identities
from bridge.domain.model.batch import BatchMark
from sandbox import nss
from sandbox.client import Sandbox
from sandbox.slurm_rest import API, credentials
from tests.integration.worlds import Job


def submit_batch(sandbox: Sandbox, first: Job) -> int:
    """Submit a SlurmJob's job, held, whose mark names the same object as a placeholder's identity."""
    assert first.identity is not None
    mark = BatchMark(
        cluster=first.identity.cluster,
        namespace=first.identity.namespace,
        name=first.identity.name,
        key=first.identity.key,
        attempt=1,
    )
    return _submit(sandbox, batch.encode(mark), hold=True, is_external=False)


def submit_again(sandbox: Sandbox, first: Job, *, hold: bool, is_external: bool = True) -> int:
    """Submit a job with the identity of another one, as a leader would that was thought dead."""
    assert first.identity is not None
    return _submit(sandbox, identities.encode(first.identity), hold=hold, is_external=is_external)


def _submit(sandbox: Sandbox, comment: str, *, hold: bool, is_external: bool) -> int:
    user = nss.JOB_USER.name
    job: dict[str, Any] = {
        "flags": ["EXTERNAL_JOB"] if is_external else [],
        "name": "second",
        "current_working_directory": "/",
        "environment": ["PATH=/usr/bin"],
        **({} if is_external else {"script": "#!/bin/sh\n"}),
        "user_id": user,
        "group_id": user,
        "account": user,
        "memory_per_node": {"set": True, "infinite": False, "number": 64},
        "hold": hold,
        "admin_comment": comment,
    }
    answer = httpx.post(
        f"{sandbox.slurmrestd_url}/slurm/{API}/job/submit",
        json={"job": job},
        headers=credentials(sandbox.instance),
        trust_env=False,
    )
    return int(answer.raise_for_status().json()["job_id"])
