"""A slurmrestd with made-up answers, under the product's own client."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from slurmclient import TokenFile
from slurmclient.transport.exchange import Reply, Request
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId

PING = b'{"meta":{"slurm":{"version":{"major":"26","minor":"05"}}}}'


@dataclass
class Server:
    """Answers as slurmrestd does; a job may be any bytes."""

    jobs: Mapping[JobId, bytes]
    others: Mapping[str, bytes] = field(default_factory=dict)
    counts_since: int = 1
    """Changes when slurmctld restarts."""
    next_id: int = 0
    """The next job's id; 0 of a Slurm that does not tell."""
    asked: list[str] = field(default_factory=list)

    def avoid(self, server: int) -> None:
        pass

    async def exchange(self, request: Request) -> Reply:
        self.asked.append(request.path.partition("v0.0.45")[2])
        wanted = {JobId(int(value)) for name, value in request.query if name == "job_id"}
        return Reply(status=200, body=self._body(self.asked[-1], wanted))

    def _body(self, path: str, wanted: Collection[JobId]) -> bytes:
        match path:
            case _ if path in self.others:
                return self.others[path]
            case "/ping/":
                return PING
            case "/diag/":
                since = {"set": True, "number": self.counts_since}
                return json.dumps({"statistics": {"req_time_start": since}}).encode()
            case "/conf":
                meta = {"NEXT_JOB_ID": {"set": bool(self.next_id), "number": self.next_id}}
                conf = {"MaxJobId": 67043328}
                return json.dumps({"slurm_conf": conf, "slurm_conf_meta": meta}).encode()
            case "/jobs/state/":
                there = self.jobs.keys()
                listed = [
                    {"job_id": str(id_), "state": ["PENDING"]} for id_ in there & (wanted or there)
                ]
                return json.dumps({"jobs": listed}).encode()
            case "/jobs/":
                return b'{"jobs":[' + b",".join(self.jobs.values()) + b"]}"
            case _:
                return b'{"jobs":[' + self.jobs[JobId(int(path.rpartition("/")[2]))] + b"]}"

    @property
    def client(self) -> SlurmClient:
        return SlurmClient(
            self,  # type: ignore[arg-type]  # all that is asked of it
            token=TokenFile("nowhere"),
            connections=4,
            on_call=lambda *_: None,
        )
