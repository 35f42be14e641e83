"""An older slurmrestd: it answers what a real one answered when it was recorded, and refuses what that one refused.

`tests/recorded/slurmrestd-RELEASE.json` has the answers: of a job that ran and was cancelled, and of what the release
cannot do. Only a job's `admin_comment` is the test's own.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from slurmclient import TokenFile
from slurmclient.transport.exchange import Reply, Request
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, Sluid

RELEASES: Final = {"25.11.7": "v0.0.44", "25.05.8": "v0.0.43"}
"""Releases and their data parsers."""


@dataclass
class OlderSlurm:
    """Answers for one job, which has run and may be cancelled."""

    release: str
    comment: str = "{}"
    """The job's `admin_comment`."""
    asked: list[str] = field(default_factory=list)
    """Methods and paths without their version."""

    def __post_init__(self) -> None:
        file = Path(__file__).parents[1] / "recorded" / f"slurmrestd-{self.release}.json"
        self._recorded: dict[str, dict[str, Any]] = json.loads(file.read_text())

    @property
    def job_id(self) -> JobId:
        return JobId(self._recorded["submit"]["answer"]["job_id"])

    @property
    def sluid(self) -> Sluid | None:
        """What the job's record has; v0.0.43 has none."""
        (job,) = self._recorded["get"]["answer"]["jobs"]
        return Sluid(job["step_id"]["sluid"]) if "step_id" in job else None

    @property
    def client(self) -> SlurmClient:
        return SlurmClient(
            self,  # type: ignore[arg-type]  # all that is asked of it
            token=TokenFile("nowhere"),
            connections=4,
            on_call=lambda *_: None,
        )

    def avoid(self, server: int) -> None:
        pass

    async def exchange(self, request: Request) -> Reply:
        api, version, path = request.path.removeprefix("/").split("/", 2)
        if version != RELEASES[self.release]:
            return Reply(status=404, body=b"Unable find requested URL. Please view /openapi/v3")
        self.asked.append(f"{request.method} {api} {path}")
        found = self._recorded[self._which(request, api, path)]
        if isinstance(answer := found["answer"], str):
            return Reply(status=found["status"], body=answer.encode())
        if api == "slurm" and path == f"job/{self.job_id}" and request.method == "GET":
            (job,) = answer["jobs"]
            answer = {**answer, "jobs": [{**job, "admin_comment": self.comment}]}
        return Reply(status=found["status"], body=json.dumps(answer).encode())

    def _which(self, request: Request, api: str, path: str) -> str:
        head, _, name = path.rstrip("/").partition("/")
        match request.method, head, name:
            case _, "ping", _:
                return "ping"
            case "GET", "nodes", _:
                return "nodes since" if request.query else "nodes"
            case "POST", "new", "node":
                return "create a node"
            case "POST", "job", "submit":
                return self._submitted(json.loads(request.content or b"{}"))
            case _, "job", _ if not name.isdecimal():
                return "get by sluid" if api == "slurm" else "slurmdb by sluid"
            case "GET", "job", _ if api == "slurmdb":
                return "slurmdb running"
            case "GET", "job", _:
                return "get" if int(name) == self.job_id else "unknown"
            case "POST", "job", _:
                return "update"
            case "DELETE", "job", _:
                return "cancel"
            case _:
                raise AssertionError(f"nothing is recorded for {request.method} {path}")

    def _submitted(self, body: Any) -> str:
        if "jobs" in body:
            return "heterogeneous"
        is_named = not body["job"]["group_id"].isdecimal()
        return "a group by name" if is_named and "a group by name" in self._recorded else "submit"
