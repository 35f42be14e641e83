"""The cluster of a `FakeSlurm`, in plain values, and the operations on it.

A job that is not held starts at once, on as many idle and undrained nodes as it requests. It ends
when it is cancelled or by `end`, and is known until `forget`.
"""

from collections.abc import Callable
from typing import Final

from slurmclient.fake.requests import WORDS, FakeRequest, JsonBody, Refused, number
from slurmclient.resources.job_states import ENDED

PARTITION: Final = "fake"


class FakeCluster:
    """Nodes, jobs and one partition; the methods are named after the operations."""

    def __init__(self, *, nodes: int, cpus: int, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._cpus = cpus
        self._started = int(clock())
        self._jobs: dict[int, JsonBody] = {}
        self._nodes = {name: self._node(name) for name in (f"node-{n}" for n in range(nodes))}
        self._next_id = 1
        self._submitted = 0

    def register(self, name: str) -> None:
        """Register a node, as its slurmd does; a known node stays as it is."""
        self._nodes.setdefault(name, self._node(name))
        self._schedule()

    def end(self, job_id: int, state: str = "COMPLETED", *, exit_code: int = 0) -> None:
        """End a job in a state, with an exit code."""
        job = self._jobs[job_id]
        job["job_state"] = [state]
        job["end_time"] = number(self.clock())
        status = "SUCCESS" if exit_code == 0 else "ERROR"
        job["exit_code"] = {"status": [status], "return_code": number(exit_code)}
        self._schedule()

    def forget(self, job_id: int) -> None:
        """Purge a job, as slurmctld does MinJobAge seconds after its end."""
        del self._jobs[job_id]

    def restart(self, *, wipe: bool = False) -> None:
        """Restart slurmctld; with `wipe` it loses all jobs and reuses their ids."""
        self._started += 1
        if wipe:
            self._jobs.clear()
            self._next_id = 1

    # --- operations, by name

    def slurm_get_ping(self, _: FakeRequest) -> JsonBody:
        """Return the one controller."""
        return {"pings": [{"hostname": "fake", "responding": True, "latency": 1, "primary": True}]}

    def slurm_get_diag(self, _: FakeRequest) -> JsonBody:
        """Return statistics."""
        counts = {
            "req_time": number(self.clock()),
            "req_time_start": number(self._started),
            "server_thread_count": 1,
            "jobs_submitted": self._submitted,
        }
        return {"statistics": counts}

    def slurm_get_jobs(self, _: FakeRequest) -> JsonBody:
        """Return all jobs."""
        return {"jobs": list(self._jobs.values()), "last_update": number(self.clock())}

    def slurm_get_jobs_state(self, request: FakeRequest) -> JsonBody:
        """Return the states of all jobs, or of the requested ones."""
        wanted = request.query.get("job_id", [])
        states = [
            {"job_id": str(job_id), "state": job["job_state"]}
            for job_id, job in self._jobs.items()
            if not wanted or str(job_id) in wanted
        ]
        return {"jobs": states}

    def slurm_get_job(self, request: FakeRequest) -> JsonBody:
        """Return a job."""
        return {"jobs": [self._job(request.parts["job_id"])]}

    def slurm_post_job_submit(self, request: FakeRequest) -> JsonBody:
        """Submit a job."""
        fields = request.body.get("job", {})
        if fields.get("partition", PARTITION) != PARTITION:
            raise Refused(2000)
        job_id = self._next_id
        self._next_id += 1
        self._submitted += 1
        now = number(self.clock())
        self._jobs[job_id] = {
            "job_id": job_id,
            "job_state": ["PENDING"],
            "state_reason": "None",
            "name": fields.get("name", ""),
            "comment": fields.get("comment", ""),
            "partition": PARTITION,
            "account": fields.get("account", ""),
            "user_name": fields.get("user_id", request.user),
            "hold": bool(fields.get("hold")),
            "time_limit": fields.get("time_limit", number(None)),
            "node_count": number(fields.get("minimum_nodes", 1)),
            "submit_time": now,
            "start_time": number(0),
            "end_time": number(0),
            "nodes": "",
            "step_id": {"sluid": f"s{self._started}.{self._submitted}"},
        }
        self._schedule()
        return {"job_id": job_id, "step_id": "batch", "job_submit_user_msg": ""}

    def slurm_post_job(self, request: FakeRequest) -> JsonBody:
        """Change a job."""
        job = self._owned(request)
        if _has_ended(job):
            raise Refused(2084)
        job.update({key: value for key, value in request.body.items() if key in job})
        self._schedule()
        return {"results": None}

    def slurm_delete_job(self, request: FakeRequest) -> JsonBody:
        """Cancel a job, or ignore a signal."""
        status = self._cancel(
            request, request.parts["job_id"], next(iter(request.query.get("signal", ())), None)
        )
        return {"status": [status] if status["error"]["code"] else []}

    def slurm_delete_jobs(self, request: FakeRequest) -> JsonBody:
        """Cancel the requested jobs, or those that match."""
        wanted = request.body.get("jobs") or [
            str(job_id)
            for job_id, job in self._jobs.items()
            if all(job.get(key) == value for key, value in request.body.items())
        ]
        return {"status": [self._cancel(request, job_id, None) for job_id in wanted]}

    def slurm_get_nodes(self, _: FakeRequest) -> JsonBody:
        """Return all nodes."""
        return {
            "nodes": [*map(self._shown, self._nodes.values())],
            "last_update": number(self.clock()),
        }

    def slurm_get_node(self, request: FakeRequest) -> JsonBody:
        """Return a node."""
        return {"nodes": [self._shown(self._named(request))]}

    def slurm_post_node(self, request: FakeRequest) -> JsonBody:
        """Change a node; warn of fields that cannot be changed."""
        node = self._named(request)
        self._check_root(request)
        for state in request.body.get("state", ()):
            if state == "DRAIN":
                node["state"] = ["IDLE", "DRAIN"]
            elif "DRAIN" in node["state"] and state in {"RESUME", "UNDRAIN"}:
                node["state"], node["reason"] = ["IDLE"], ""
            elif state == "RESUME":
                raise Refused(2180)
        known = {"reason", "comment", "extra", "weight"} & request.body.keys()
        node.update({key: request.body[key] for key in known})
        self._schedule()
        ignored = request.body.keys() - known - {"state"}
        words = "Ignoring unknown field"
        return {
            "warnings": [
                {"description": f"{words} {key}", "source": f"#/{key}/"} for key in ignored
            ]
        }

    def slurm_delete_node(self, request: FakeRequest) -> JsonBody:
        """Delete a node that has no job."""
        node = self._named(request)
        self._check_root(request)
        if node["name"] in self._busy():
            raise Refused(2016)
        del self._nodes[node["name"]]
        return {}

    def slurm_post_new_node(self, request: FakeRequest) -> JsonBody:
        """Create a node."""
        self._check_root(request)
        conf = dict(word.split("=", 1) for word in request.body["node_conf"].split())
        if conf["NodeName"] in self._nodes:
            raise Refused(2168)
        self._nodes[conf["NodeName"]] = self._node(conf["NodeName"])
        return {}

    def slurm_get_licenses(self, _: FakeRequest) -> JsonBody:
        """Return no licenses."""
        return {"licenses": []}

    def slurm_get_partitions(self, _: FakeRequest) -> JsonBody:
        """Return the one partition."""
        nodes = {"configured": ",".join(self._nodes), "total": len(self._nodes)}
        partition = {"name": PARTITION, "nodes": nodes, "partition": {"state": ["UP"]}}
        return {"partitions": [partition], "last_update": number(self.clock())}

    def slurm_get_partition(self, request: FakeRequest) -> JsonBody:
        """Return the partition if the name is right."""
        if request.parts["partition_name"] != PARTITION:
            return {"partitions": []}
        return self.slurm_get_partitions(request)

    # --- helpers of the operations

    def _node(self, name: str) -> JsonBody:
        return {"name": name, "state": ["IDLE"], "reason": "", "comment": "", "cpus": self._cpus}

    def _shown(self, node: JsonBody) -> JsonBody:
        is_busy = node["name"] in self._busy()
        alike = ["ALLOCATED" if state == "IDLE" and is_busy else state for state in node["state"]]
        return {**node, "state": alike, "alloc_cpus": self._cpus if is_busy else 0}

    def _job(self, job_id: str) -> JsonBody:
        job = self._jobs.get(int(job_id)) if job_id.isdecimal() else None
        if job is None:
            raise Refused(2017, status=404)
        return job

    def _owned(self, request: FakeRequest) -> JsonBody:
        job = self._job(request.parts["job_id"])
        if request.user not in {"root", job["user_name"]}:
            raise Refused(2002)
        return job

    def _named(self, request: FakeRequest) -> JsonBody:
        node = self._nodes.get(request.parts["node_name"])
        if node is None:
            raise Refused(2018)
        return node

    def _check_root(self, request: FakeRequest) -> None:
        if request.user != "root":
            raise Refused(2010)

    def _cancel(self, request: FakeRequest, job_id: str, signal: str | None) -> JsonBody:
        code = 0
        job = self._jobs.get(int(job_id)) if str(job_id).isdecimal() else None
        if job is None:
            code = 2017
        elif request.user not in {"root", job["user_name"]}:
            code = 2002
        elif _has_ended(job):
            code = 2021
        elif signal in {None, "KILL", "SIGKILL", "9"}:
            self.end(int(job_id), "CANCELLED")
        words = WORDS.get(code, "No error")
        return {"error": {"string": words, "code": code, "message": words}, "step_id": str(job_id)}

    def _busy(self) -> set[str]:
        return {
            name
            for job in self._jobs.values()
            if "RUNNING" in job["job_state"]
            for name in job["nodes"].split(",")
        }

    def _schedule(self) -> None:
        for job in self._jobs.values():
            if job["job_state"] != ["PENDING"]:
                continue
            busy = self._busy()
            free = [
                n
                for n, node in self._nodes.items()
                if n not in busy and "DRAIN" not in node["state"]
            ]
            wanted = int(job["node_count"]["number"])
            job["state_reason"] = "JobHeldUser" if job["hold"] else "Resources"
            if not job["hold"] and wanted <= len(free):
                job["nodes"] = ",".join(free[:wanted])
                job["job_state"], job["state_reason"] = ["RUNNING"], "None"
                job["start_time"] = number(self.clock())


def _has_ended(job: JsonBody) -> bool:
    return bool(ENDED & set(job["job_state"]))
