"""A SlurmJob as a whole, and how one is read from JSON."""

from typing import Final, Protocol

import msgspec

from slurmjobs.objects.spec import SlurmJobSpec
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.values.faults import Fault

GROUP: Final = "slurm-bridge.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "SlurmJob"
PLURAL: Final = "slurmjobs"

CONTROLLER: Final = "slurm-bridge.dev/slurmjob-controller"
"""What `spec.managedBy` says of objects that are ours; absent, it means the same."""


Json = bytes | msgspec.Raw


class JobResource(Protocol):
    """A resource whose objects are SlurmJobs: our own, or one that is translated."""

    @property
    def api_version(self) -> str:
        """As in a manifest."""

    @property
    def kind(self) -> str:
        """As in a manifest."""

    @property
    def plural(self) -> str:
        """As in a path."""

    def read(self, body: Json) -> "SlurmJobObject":
        """Read an object.

        Raises:
            msgspec.ValidationError: It is none of these; the message names the first field at fault.
            msgspec.DecodeError: It is no JSON.
        """


class SlurmJobObject(ObjectStruct, frozen=True):
    """A batch job in Kubernetes."""

    metadata: ObjectMetadata
    spec: SlurmJobSpec
    status: SlurmJobStatus = SlurmJobStatus()

    @property
    def resource(self) -> JobResource:
        """Where the object is in the API."""
        return OURS

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Why it cannot be a SlurmJob, of an object that is translated."""
        return ()

    @property
    def only_rule(self) -> str:
        """The one policy rule that it may run under; "" for any."""
        return ""

    def told(self, status: SlurmJobStatus) -> dict[str, object]:
        """Return the status as the object's own resource has it."""
        found: dict[str, object] = msgspec.to_builtins(status)
        return found

    @property
    def full_name(self) -> str:
        """For people: namespace and name, or the prefix of the name it will get."""
        return self.metadata.full_name

    @property
    def is_ours(self) -> bool:
        """Check whether no other controller is named."""
        return self.spec.managed_by in (None, CONTROLLER)


class _Head(ObjectStruct, frozen=True):
    metadata: ObjectMetadata


_decoder = msgspec.json.Decoder(SlurmJobObject)
_head = msgspec.json.Decoder(_Head)


def read_metadata(body: Json) -> ObjectMetadata:
    """Read the metadata alone, of an object that nobody has looked at yet.

    Raises:
        msgspec.ValidationError: It has none; the message names the first field at fault.
        msgspec.DecodeError: It is no JSON.
    """
    return _head.decode(body).metadata


def read(body: Json) -> SlurmJobObject:
    """Read an object.

    Raises:
        msgspec.ValidationError: It is no SlurmJob; the message names the first field at fault.
        msgspec.DecodeError: It is no JSON.
    """
    return _decoder.decode(body)


class _OurResource:
    """The resource of this module."""

    api_version = API_VERSION
    kind = KIND
    plural = PLURAL

    def read(self, body: Json) -> SlurmJobObject:
        return read(body)


OURS: Final = _OurResource()
