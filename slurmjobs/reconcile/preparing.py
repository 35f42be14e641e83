"""Build the job that a SlurmJob is submitted as, or say why that is not possible."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

import msgspec
import structlog

from bridge.domain.request.rules import Policy
from slurmjobs.identity import permission
from slurmjobs.identity.permission import JobProvenance
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.reconcile.dependencies import SlurmDependencies, UnmetDependency
from slurmjobs.request import build
from slurmjobs.request.origin import ScriptOrigin
from slurmjobs.script import read
from slurmruntime.kube import errors, paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import names
from slurmruntime.values.faults import Refusal, one_line, shortened

_log = structlog.get_logger(__name__)

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class PreparationFailure(Exception):
    """There is no job to submit, for a reason in CamelCase; final if no change would help."""

    def __init__(self, reason: str, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text
        self.is_final = is_final


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


class Preparer:
    """Builds the job of a SlurmJob, from fresh facts for each submit."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        policy: Callable[[], Policy],
        labels: Callable[[str], Awaitable[Mapping[str, str]]],
        slurm_user: Callable[[], Awaitable[frozenset[str]]],
        now: Callable[[], datetime],
        resolve: Callable[[SlurmJobObject], SlurmDependencies | UnmetDependency],
        has_collectors: bool,
    ) -> None:
        """Keep the sources of facts.

        Args:
            slurm_user: returns the name and the uid of SlurmUser; no rule may run jobs as either.
            now: in the time zone of times in scripts.
            has_collectors: whether results can be copied in this installation.
        """
        self._kube = kube
        self._policy = policy
        self._labels = labels
        self._slurm_user = slurm_user
        self._now = now
        self._resolve = resolve
        self._has_collectors = has_collectors
        self._one_at_a_time = asyncio.Lock()

    async def prepare(self, job: SlurmJobObject) -> Mapping[str, object]:
        """Return the fields of the job, without its mark.

        Raises:
            PreparationFailure: there is no job to submit.
            KubeError, SlurmError: something could not be read.
        """
        if job.faults:  # translated without faults at CREATE, but the settings have changed since
            raise PreparationFailure("ManifestInvalid", one_line(job.faults))
        namespace = job.metadata.namespace
        labels = await self._labels(namespace)
        if labels.get(names.ENABLED_LABEL) != "true":
            text = f"refused: namespace {namespace} does not have the label {names.ENABLED_LABEL}: true"
            raise PreparationFailure("NamespaceNotEnabled", text)
        if job.spec.results and not self._has_collectors:
            raise PreparationFailure(
                "ResultsNotServed",
                "spec.results: this installation of slurm-bridge has no image to copy results with"
                " (slurm_jobs.companion_image): leave them out, or ask its administrator to set one",
                is_final=True,
            )
        resolved = self._resolve(job)
        if isinstance(resolved, UnmetDependency):
            reason = "DependencyNeverSatisfied" if resolved.is_final else "Dependency"
            raise PreparationFailure(reason, resolved.text, is_final=resolved.is_final)
        script = await self._script(job)
        provenance = JobProvenance(namespace_labels=labels, operators=await self._slurm_user())
        try:
            # On a thread: a long list of nodes in a script takes a quarter of a second. One script at a time, or they
            # would take all threads of the loop, on which it also looks up addresses.
            async with self._one_at_a_time:
                return await asyncio.to_thread(self._fields, job, script, provenance, resolved)
        except PreparationFailure:
            raise
        except Exception as error:  # a bug of ours that the author has to see
            _log.exception("slurm_job.not_prepared")
            why = f"{type(error).__name__}: {shortened(str(error), 256)}"
            raise PreparationFailure(
                "PreparationFailed",
                f"slurm-bridge failed to build a job from the script, which is a bug ({why}); nothing was submitted."
                " Report it, and leave out whatever is unusual in the script",
            ) from error

    def _fields(
        self,
        job: SlurmJobObject,
        script: str,
        provenance: JobProvenance,
        resolved: SlurmDependencies,
    ) -> Mapping[str, object]:
        content = read.script(script, job.spec.options)
        try:
            permit = permission.decide(job, content.options, provenance, self._policy())
        except Refusal as refusal:
            raise PreparationFailure("PolicyRefused", refusal.text) from refusal
        variables = {variable.name: variable.value for variable in job.spec.env}
        origin = ScriptOrigin(
            directory=permit.working_directory or "/",
            now=self._now(),
            environment={"PATH": _PATH, "USER": permit.user, "LOGNAME": permit.user, **variables},
        )
        result = build.assemble(script, content, name=job.metadata.name, origin=origin)
        if result.request is None:
            is_final = job.spec.script is not None
            raise PreparationFailure("ScriptInvalid", one_line(result.faults), is_final=is_final)
        request = permission.grant(result.request, permit)
        request = replace(request, fields=resolved.merge_into(request.fields))
        arguments = {"argv": [job.metadata.name, *job.spec.args]} if job.spec.args else {}
        return {**request.body, **arguments}

    async def _script(self, job: SlurmJobObject) -> str:
        if job.spec.script is not None:
            return job.spec.script
        if job.spec.script_from is None:
            text = "expected spec.script or spec.scriptFrom"
            raise PreparationFailure("ScriptInvalid", text, is_final=True)
        ref = job.spec.script_from.config_map_key_ref
        path = paths.of("api", "v1", "namespaces", job.metadata.namespace, "configmaps", ref.name)
        try:
            body = await self._kube.request("GET", path)
            config_map = msgspec.json.decode(body, type=_ConfigMap)
        except errors.NotFound:
            config_map = _ConfigMap()
        except msgspec.MsgspecError as error:
            text = f"ConfigMap {ref.name}: {error}"
            raise PreparationFailure("ScriptInvalid", text) from error
        script = (config_map.data or {}).get(ref.key)
        if script is None:
            text = f"there is no ConfigMap {ref.name} with key {ref.key} in this namespace"
            raise PreparationFailure("ScriptMissing", text)
        return script
