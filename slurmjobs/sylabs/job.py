"""Decode objects of Sylabs' kinds into the SlurmJobs that they translate to."""

from dataclasses import dataclass
from typing import Final

import msgspec
from typing_extensions import override

from slurmjobs.objects.slurmjob import JobResource, Json, SlurmJobObject
from slurmjobs.objects.spec import SlurmJobSpec
from slurmjobs.objects.status import SlurmJobStatus
from slurmjobs.sylabs import translation
from slurmjobs.sylabs.site import SylabsSite
from slurmjobs.sylabs.spec import ContainerSpec, SlurmSpec, WlmSpec
from slurmjobs.sylabs.translation import OldSpec
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.values.faults import Fault, bounded

VERSION: Final = "v1alpha1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SylabsKind:
    """One of Sylabs' kinds."""

    group: str
    kind: str
    plural: str
    spec: type[OldSpec]

    @property
    def api_version(self) -> str:
        """As in a manifest."""
        return f"{self.group}/{VERSION}"


KINDS: Final = (
    SylabsKind(group="slurm.sylabs.io", kind="SlurmJob", plural="slurmjobs", spec=SlurmSpec),
    SylabsKind(group="wlm.sylabs.io", kind="SlurmJob", plural="slurmjobs", spec=WlmSpec),
    SylabsKind(group="wlm.sylabs.io", kind="WlmJob", plural="wlmjobs", spec=ContainerSpec),
)


class SylabsJob(SlurmJobObject, frozen=True, kw_only=True):
    """A SlurmJob translated from an object of another kind."""

    resource: JobResource
    faults: tuple[Fault, ...] = ()
    only_rule: str = ""
    warnings: tuple[Fault, ...] = ()
    places: dict[str, str] = msgspec.field(default_factory=dict)
    """Path in our spec → the path in the object."""

    @override
    def status_body(self, status: SlurmJobStatus) -> dict[str, object]:
        """Return our status, with Sylabs' one-word status added."""
        return {**super().status_body(status), "status": status.phase or "Unknown"}


class _Document(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    spec: msgspec.Raw
    status: SlurmJobStatus = SlurmJobStatus()


_documents: Final = msgspec.json.Decoder(_Document)


class SylabsResource(JobResource):
    """One of Sylabs' kinds as a resource of SlurmJobs."""

    def __init__(self, kind: SylabsKind, site: SylabsSite) -> None:
        super().__init__(kind.api_version, kind.kind, kind.plural)
        self._site = site
        self._specs: msgspec.json.Decoder[OldSpec] = msgspec.json.Decoder(kind.spec)

    @override
    def read(self, body: Json) -> SylabsJob:
        document = _documents.decode(body)
        spec = self._specs.decode(document.spec)
        translated = translation.translate(spec, document.metadata, self._site)
        return SylabsJob(
            metadata=document.metadata,
            spec=SlurmJobSpec(
                script=translated.script,
                options=translated.options,
                output=self._site.output,
                results=translated.results,
            ),
            status=document.status,
            resource=self,
            faults=bounded(translated.faults),
            only_rule=translated.only_rule,
            warnings=tuple(translated.warnings),
            places=translated.places,
        )
