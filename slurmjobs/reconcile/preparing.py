"""Make the job that a SlurmJob is submitted as, or say why there is none."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import msgspec
import structlog

from bridge.domain.request.rules import Policy
from slurmjobs.identity import granting, permission
from slurmjobs.identity.permission import JobProvenance
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.reconcile.dependencies import Resolved, Unmet
from slurmjobs.request import build
from slurmjobs.request.origin import ScriptOrigin
from slurmjobs.script import read
from slurmruntime.kube import errors, paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import names
from slurmruntime.values.faults import Refused, shortened, told

_log = structlog.get_logger(__name__)

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPossible:
    """Why there is nothing to submit."""

    reason: str
    """CamelCase."""
    text: str
    is_final: bool = False


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


class Preparer:
    """Finds out what a job depends on, each time it is submitted."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        policy: Callable[[], Policy],
        labels: Callable[[str], Awaitable[Mapping[str, str]]],
        slurm_user: Callable[[], Awaitable[frozenset[str]]],
        now: Callable[[], datetime],
        resolve: Callable[[SlurmJobObject], Resolved | Unmet],
        has_collectors: bool,
    ) -> None:
        """Remember where to read.

        Args:
            kube: the API server.
            policy: returns the policy in force.
            labels: reads a namespace's labels, or remembers them.
            slurm_user: reads the name and the uid of SlurmUser, whom no rule may result in.
            now: with the zone that times in scripts are meant in.
            resolve: what the SlurmJob's dependencies are to Slurm.
            has_collectors: results can be copied here.
        """
        self._kube = kube
        self._policy = policy
        self._labels = labels
        self._slurm_user = slurm_user
        self._now = now
        self._resolve = resolve
        self._has_collectors = has_collectors

    async def prepare(self, job: SlurmJobObject) -> Mapping[str, object] | NotPossible:
        """Return the fields of the job, without its mark.

        Raises:
            KubeError, SlurmError: something could not be read.
        """
        if job.faults:  # what it means was found out at CREATE; an administrator has changed that
            return NotPossible(reason="ManifestInvalid", text=told(job.faults))
        namespace = job.metadata.namespace
        labels = await self._labels(namespace)
        if labels.get(names.ENABLED_LABEL) != "true":
            return NotPossible(
                reason="NamespaceNotEnabled",
                text=f"refused: namespace {namespace} does not have the label {names.ENABLED_LABEL}: true",
            )
        if job.spec.results and not self._has_collectors:
            return NotPossible(
                reason="ResultsNotServed",
                text="spec.results: the administrator of slurm-bridge has set no image that copies them"
                " (slurm_jobs.companion_image): leave them out, or ask for it",
                is_final=True,
            )
        resolved = self._resolve(job)
        if isinstance(resolved, Unmet):
            reason = "DependencyNeverSatisfied" if resolved.is_final else "Dependency"
            return NotPossible(reason=reason, text=resolved.text, is_final=resolved.is_final)
        script = await self._script(job)
        if isinstance(script, NotPossible):
            return script
        provenance = JobProvenance(namespace_labels=labels, operators=await self._slurm_user())
        try:
            return self._fields(job, script, provenance, resolved)
        except Exception as error:  # noqa: BLE001  # a bug of ours, which its author is to know of
            _log.exception("slurm_job.not_prepared")
            why = f"{type(error).__name__}: {shortened(str(error), 256)}"
            return NotPossible(
                reason="PreparationFailed",
                text=f"slurm-bridge failed to make a job of the script, which is a bug ({why}); nothing was submitted."
                " Report it, and leave out what is unusual in the script",
            )

    def _fields(
        self, job: SlurmJobObject, script: str, provenance: JobProvenance, resolved: Resolved
    ) -> Mapping[str, object] | NotPossible:
        found = read.script(script, job.spec.options)
        permit = permission.permitted(job, found.options, provenance, self._policy())
        if isinstance(permit, Refused):
            return NotPossible(reason="PolicyRefused", text=permit.text)
        own = {each.name: each.value for each in job.spec.env}
        origin = ScriptOrigin(
            directory=permit.working_directory or "/",
            now=self._now(),
            environment={"PATH": _PATH, "USER": permit.user, "LOGNAME": permit.user, **own},
        )
        built = build.assemble(script, found, name=job.metadata.name, origin=origin)
        if built.request is None:
            return NotPossible(
                reason="ScriptInvalid",
                text=told(built.faults),
                is_final=job.spec.script is not None,
            )
        request = granting.granted(built.request, permit)
        request = replace(request, fields=resolved.added_to(request.fields))
        arguments = {"argv": [job.metadata.name, *job.spec.args]} if job.spec.args else {}
        return {**request.body, **arguments}

    async def _script(self, job: SlurmJobObject) -> str | NotPossible:
        if job.spec.script is not None:
            return job.spec.script
        if job.spec.script_from is None:
            return NotPossible(
                reason="ScriptInvalid",
                text="expected spec.script or spec.scriptFrom",
                is_final=True,
            )
        ref = job.spec.script_from.config_map_key_ref
        path = paths.of("api", "v1", "namespaces", job.metadata.namespace, "configmaps", ref.name)
        try:
            body = await self._kube.request("GET", path)
            found = msgspec.json.decode(body, type=_ConfigMap)
        except errors.NotFound:
            found = _ConfigMap()
        except msgspec.MsgspecError as error:
            return NotPossible(reason="ScriptInvalid", text=f"ConfigMap {ref.name}: {error}")
        script = (found.data or {}).get(ref.key)
        if script is None:
            return NotPossible(
                reason="ScriptMissing",
                text=f"there is no ConfigMap {ref.name} with a key {ref.key} in this namespace",
            )
        return script
