"""A bridged namespace with SlurmJobs, for the tests of real scripts."""

from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmcli import plugin
from tests.servers import wait_until

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Namespace:
    """A bridged namespace for SlurmJobs."""

    sandbox: Sandbox
    name: str

    @property
    def path(self) -> str:
        return f"/apis/slurm-bridge.dev/v1alpha1/namespaces/{self.name}/slurmjobs"

    def create(self, name: str, script: str, **spec: Any) -> None:
        body = {
            "apiVersion": "slurm-bridge.dev/v1alpha1",
            "kind": "SlurmJob",
            "metadata": {"name": name},
            "spec": {
                "script": f"#!/bin/sh\n#SBATCH --mem=16 --time=5 --output=/dev/null\n{script}\n",
                **spec,
            },
        }
        self.sandbox.admin.create(self.path, body)

    def get(self, name: str) -> dict[str, Any] | None:
        try:
            return self.sandbox.admin.get(f"{self.path}/{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = (self.get(name) or {}).get("status", {})
        return found

    def await_phase(self, name: str, *phases: str) -> dict[str, Any]:
        wait_until(
            lambda: self.status(name).get("phase") in phases,
            PATIENCE_S,
            sandbox=self.sandbox,
        )
        return self.status(name)

    def events(self, name: str) -> set[str]:
        """The reasons of the Events about it."""
        path = f"/api/v1/namespaces/{self.name}/events"
        selected = f"involvedObject.name={name},involvedObject.kind=SlurmJob"
        return {
            item["reason"] for item in self.sandbox.admin.get(path, fieldSelector=selected)["items"]
        }

    def why(self, name: str) -> str:
        """What `kubectl slurm why` says, on one line."""
        arguments = ["why", f"{self.name}/{name}"]
        done = CliRunner().invoke(
            plugin.app(), arguments, env={**self.sandbox.env, "COLUMNS": "400"}
        )
        return " ".join(done.stdout.split())

    def accounted(self, name: str) -> list[list[str]]:
        """Id, state and exit code of every job of that name that slurmdbd has."""
        printed = self.sandbox.run(
            *("sacct", "--noheader", "--parsable2", "--allocations", "--allusers"),
            *("--starttime=now-1hours", f"--name={name}", "--format=jobid,state,exitcode"),
        )
        return [line.split("|") for line in printed.splitlines()]


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in status["conditions"]
    }
