"""Submit a script twice, by real sbatch and by our request, and tell what differs."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from docs.generate.slurmjob_unlike import UNLIKE
from sandbox.client import Sandbox
from slurmclient import Client
from slurmclient.errors import SlurmError
from slurmclient.models import Job
from slurmjobs.request.build import build
from slurmjobs.request.origin import ScriptOrigin
from slurmjobs.script import body

NAME = "script.sh"
_OWN = {
    "job_id",
    "step_id",
    "submit_time",
    "last_sched_evaluation",
    "eligible_time",
    "accrue_time",
    "priority_by_partition",
}
"""Fields that two jobs never share."""
_OF_THE_SCHEDULER = {"DEPENDENT"}
"""Flags of a job that depend on how far the scheduler has looked at it."""
_OF_THE_PROCESS = ("SLURM_RLIMIT_", "SLURM_SUBMIT_HOST")
"""What sbatch has from its own process, and a SlurmJob from none."""
_TEXT_OWN = ("JobId", "SubmitTime", "LastSchedEval", "EligibleTime", "AccrueTime", "SLUID")
_TEXT_UNLIKE = ("SubmitLine", "Command", "AllocNode:Sid")


@dataclass(frozen=True)
class Submission:
    """A job that exists, or what was said instead."""

    job_id: int = 0
    refusal: str = ""


@dataclass(frozen=True)
class Judge:
    """Submits by both ways."""

    slurm: Sandbox
    client: Client
    folder: Path
    submitted: list[int] = field(default_factory=list)

    def by_sbatch(self, script: bytes, *options: str) -> Submission:
        path = self.folder / NAME
        path.write_bytes(script)
        program = str(self.slurm.instance.bin / "sbatch")
        done = subprocess.run(
            (program, *options, "--parsable", NAME),
            cwd=self.folder,
            env=self._env(),
            capture_output=True,
            check=False,
            timeout=30,
        )
        said = done.stdout.decode(errors="replace").strip()
        if done.returncode or not said.isdecimal():
            return Submission(refusal=done.stderr.decode(errors="replace") or "no job")
        self.submitted.append(int(said))
        return Submission(int(said))

    async def by_us(self, script: bytes, fields: Mapping[str, object]) -> Submission:
        text, faults = body.decode(script)
        built = build(text, name=NAME, origin=self._origin(), fields=fields)
        if built.request is None or faults:
            return Submission(refusal="; ".join(fault.text for fault in (*faults, *built.faults)))
        try:
            done = await self.client.jobs.submit(
                built.request.script,
                environment=built.request.environment,
                **built.request.fields,  # type: ignore[arg-type]  # fields of any name
            )
        except SlurmError as error:
            return Submission(refusal=f"Slurm: {error}")
        misread = [warning for warning in done.warnings if warning.source.startswith("#/job/")]
        assert not misread, misread
        self.submitted.append(done.job_id)
        return Submission(done.job_id)

    def _env(self) -> dict[str, str]:
        return {**self.slurm.env, "SHELL": "/bin/sh", "COLOUR": "blue, or green"}

    def _origin(self) -> ScriptOrigin:
        passed_on = self._wrapper_env()
        return ScriptOrigin(
            directory=str(self.folder),
            now=datetime.now().astimezone(),  # noqa: TID251  # sbatch asks the clock, too
            environment={**self._env(), **passed_on},
            umask=_umask(),
            nice=os.getpriority(os.PRIO_PROCESS, 0),
        )

    def _wrapper_env(self) -> dict[str, str]:
        """What the sandbox's own `sbatch`, a script, sets for the real one."""
        text = (self.slurm.instance.bin / "sbatch").read_text()
        found = dict(re.findall(r"(\w+)=('[^']*'|\S+) ", text))
        return {name: value.strip("'") for name, value in found.items()} | {"PWD": str(self.folder)}

    async def differences(self, one: int, other: int) -> list[str]:
        """Return every field, line and variable in which two jobs differ."""
        left, right = [await self._all(job_id) for job_id in (one, other)]
        return [
            f"{key}: sbatch {left.get(key)!r}, ours {right.get(key)!r}"
            for key in sorted(left.keys() | right.keys())
            if left.get(key) != right.get(key)
        ]

    async def _all(self, job_id: int) -> dict[str, object]:
        job = await self.client.jobs.get(job_id, as_=Job)
        raw: dict[str, Any] = msgspec.to_builtins(msgspec.structs.asdict(job), enc_hook=str)
        raw["flags"] = sorted(set(raw["flags"]) - _OF_THE_SCHEDULER)
        found: dict[str, object] = {
            f"REST {key}": _without_id(key, self._placed(value), job_id)
            for key, value in raw.items()
            if key not in _OWN | set(UNLIKE)
        }
        text = self.slurm.run("scontrol", "show", "job", "-o", "-d", str(job_id)).splitlines()[0]
        for key, value in re.findall(r"(\S+?)=(.*?)(?= \S+=|$)", text):
            if key not in _TEXT_OWN + _TEXT_UNLIKE:
                found[f"scontrol {key}"] = _without_id(key, self._placed(value), job_id)
        for name, value in self.environment(job_id).items():
            found[f"environment {name}"] = value
        found["script"] = self._file(job_id, "script")
        return found

    def _placed(self, value: object) -> str:
        """Keep the numbers in the folder's name from being taken for a job's id."""
        return str(value).replace(str(self.folder), "FOLDER")

    def environment(self, job_id: int) -> Mapping[str, str]:
        """Read the environment that slurmctld keeps for the job."""
        content = self._file(job_id, "environment")[4:].decode()
        variables = dict(each.partition("=")[::2] for each in content.split("\0") if each)
        return {
            name: value
            for name, value in variables.items()
            if not name.startswith(("SLURM_JWT", *_OF_THE_PROCESS))
        }

    def _file(self, job_id: int, name: str) -> bytes:
        state = self.slurm.slurm_conf.parent / "state"
        return (state / f"hash.{job_id % 10}" / f"job.{job_id}" / name).read_bytes()


def _without_id(key: str, value: str, job_id: int) -> str:
    """Take the job's id out of file names and ids: two jobs never share it."""
    if not key.lower().startswith(("std", "array_job_id", "arrayjobid", "standard_")):
        return value
    return re.sub(rf"(?<![0-9]){job_id}(?![0-9])", "JOB", value)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
