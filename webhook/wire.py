"""Decode reviews of the admission API (`admission.k8s.io/v1 AdmissionReview`).

Source: <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/>.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from bridge.domain import caps
from bridge.domain.admission import by_class
from bridge.domain.admission.review import Draft
from bridge.domain.caps import Sizes
from bridge.domain.model import demand
from bridge.domain.request import permit
from bridge.domain.request.rules import Requester
from bridge.domain.workloads import kinds
from slurmruntime.model.affinity import Toleration
from slurmruntime.values.faults import shortened
from webhook import placing
from webhook.placing import Affinity, is_set

API_VERSION = "admission.k8s.io/v1"
LONGEST_NAME = 4096
"""Characters of a review's uid and of a user's name, which responses repeat. A uid has 36."""
LARGEST_OBJECT_BYTES = 2 * caps.TABLE["object_bytes"].largest
"""Of a pod's JSON, under any setting: its `managedFields`, which do not count for the cap, may be as long as the rest."""


class NotAReviewError(ValueError):
    """The body is not an AdmissionReview that can be answered."""


class MalformedObjectError(ValueError):
    """The review can be answered, but its object is not of its kind."""


class _Struct(msgspec.Struct, rename="camel", gc=False):
    """Base of the structs. Unknown fields are skipped without decoding."""


class _Kind(_Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class _User(_Struct):
    username: str = ""
    groups: list[str] = []


class _Request(_Struct):
    uid: str
    operation: str = ""
    kind: _Kind = msgspec.field(default_factory=_Kind)
    sub_resource: str = ""
    namespace: str = ""
    user_info: _User = msgspec.field(default_factory=_User)
    object: msgspec.Raw = msgspec.Raw()
    old_object: msgspec.Raw = msgspec.Raw()


class _Review(_Struct):
    api_version: str = ""
    kind: str = ""
    request: _Request | None = None


class _Owner(_Struct):
    kind: str = ""
    uid: str = ""
    controller: bool = False


class _FieldsEntry(_Struct):
    operation: str = ""


class _NameMetadata(_Struct):
    name: str = ""
    generate_name: str = ""

    @property
    def called(self) -> str:
        """The name, or the beginning of the one that the API server is about to make."""
        return self.name or f"{self.generate_name}…"


class _Metadata(_NameMetadata):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[_Owner] = []
    finalizers: list[str] | None = None
    managed_fields: msgspec.Raw = msgspec.Raw()


class _Claim(_Struct):
    name: str = ""
    resource_claim_template_name: str = ""


class _Resources(_Struct):
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    claims: list[_Claim] = []


class _Port(_Struct):
    host_port: int = 0


class _Container(_Struct):
    resources: _Resources = msgspec.field(default_factory=_Resources)
    ports: list[_Port] | None = None
    restart_policy: str = ""


class _Gate(_Struct):
    name: str


class _Spread(_Struct):
    when_unsatisfiable: str = ""


class _Spec(_Struct):
    containers: list[_Container] = []
    init_containers: list[_Container] = []
    overhead: dict[str, str] = {}
    resources: _Resources | None = None
    resource_claims: list[_Claim] = []
    volumes: list[dict[str, msgspec.Raw]] = []
    scheduling_group: msgspec.Raw = msgspec.Raw()
    workload_ref: msgspec.Raw = msgspec.Raw()  # Kubernetes 1.35's name of the group
    scheduler_name: str = ""
    node_name: str = ""
    node_selector: dict[str, str] = {}
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None
    scheduling_gates: list[_Gate] | None = None
    tolerations: msgspec.Raw = msgspec.Raw()
    topology_spread_constraints: list[_Spread] = []
    affinity: Affinity = msgspec.field(default_factory=Affinity)


class _Pod(_Struct):
    metadata: _Metadata
    spec: _Spec


class _ObjectName(_Struct):
    metadata: _NameMetadata = msgspec.field(default_factory=_NameMetadata)


_named = msgspec.json.Decoder(_ObjectName)
_managed_fields = msgspec.json.Decoder(list[_FieldsEntry] | None)
_review = msgspec.json.Decoder(_Review)
_pod = msgspec.json.Decoder(_Pod)


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One request from the API server."""

    uid: str
    namespace: str
    requester: Requester
    created: str
    """The kind of a created object: `Pod`, `SlurmJob.slurm-bridge.dev` …; "" for any other request."""
    updated: str
    """The kind of an updated object; "" for any other request, and for subresources."""
    document: bytes
    """The object as JSON."""
    before: bytes
    """The object before an update, as JSON; b"null" or b"" for none."""


def read(body: bytes) -> Review:
    """Read a review; raise NotAReviewError if it is none, or has no uid to respond to."""
    try:
        review = _review.decode(body)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors too
        raise NotAReviewError(f"the body is not an AdmissionReview: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        raise NotAReviewError(
            f"expected an AdmissionReview of {API_VERSION}, found {review.kind!r} of {review.api_version!r}"
        )
    request = review.request
    if request is None or not request.uid:
        raise NotAReviewError("the AdmissionReview has no request.uid to answer to")
    if (longest := max(len(request.uid), len(request.user_info.username))) > LONGEST_NAME:
        words = f"at most {LONGEST_NAME} characters in request.uid and userInfo.username"
        raise NotAReviewError(f"expected {words}, found {longest}")
    kind = f"{request.kind.kind}.{request.kind.group}".removesuffix(".")
    operation = "" if request.sub_resource else request.operation
    return Review(
        uid=request.uid,
        namespace=request.namespace,
        requester=Requester(user=request.user_info.username, groups=request.user_info.groups),
        created=kind if operation == "CREATE" else "",
        updated=kind if operation == "UPDATE" else "",
        document=bytes(request.object),
        before=bytes(request.old_object),
    )


def name(review: Review) -> str:
    """Return the object's name for messages; "?" if it cannot be read."""
    try:
        return shortened(_named.decode(review.document).metadata.called, 253)
    except (ValueError, RecursionError):
        return "?"


def draft(review: Review, *, most_bytes: int = LARGEST_OBJECT_BYTES) -> Draft:
    """Read the pod of a review.

    Args:
        most_bytes: of its JSON, `managedFields` included; more is not read at all.

    Raises:
        MalformedObjectError: it is not a pod, or longer than that.
    """
    if (length := len(review.document)) > most_bytes:
        words = (
            f"expected at most {most_bytes} bytes of JSON, managedFields included, found {length}"
        )
        raise MalformedObjectError(f"request.object: {words} (twice the fixed cap object_bytes)")
    if not review.document or review.document == b"null":
        raise MalformedObjectError("request.object is missing")
    try:
        return _draft(_pod.decode(review.document), review)
    except (ValueError, RecursionError) as error:
        raise MalformedObjectError(f"request.object is not a pod: {error}") from error


def before(review: Review) -> Draft:
    """Read the pod as it was before an update; otherwise like `draft`.

    Raises MalformedObjectError if there is none, or it is too long.
    """
    return draft(replace(review, document=review.before))


def _draft(pod: _Pod, review: Review) -> Draft:
    meta, spec = pod.metadata, pod.spec
    affinity = spec.affinity
    tolerations = placing.tolerations(spec.tolerations)
    fields = _managed_fields.decode(meta.managed_fields or b"null")
    return Draft(
        name=meta.called,
        namespace=review.namespace,
        requester=review.requester,
        labels=meta.labels,
        annotations=meta.annotations,
        owner_kinds=tuple(owner.kind for owner in meta.owner_references),
        controller_uid=next((owner.uid for owner in meta.owner_references if owner.controller), ""),
        scheduler_name=spec.scheduler_name,
        node_name=spec.node_name,
        demand=demand.of(
            map(_resources, spec.containers),
            map(_resources, spec.init_containers),
            spec.overhead,
            demand.Resources(spec.resources.requests, spec.resources.limits)
            if spec.resources
            else None,
        ),
        deadline_s=spec.active_deadline_seconds,
        node_choices=permit.node_choices(
            has_selector=bool(spec.node_selector), has_terms=placing.requires_nodes(affinity)
        ),
        resource_claims=tuple(resource_claim.name for resource_claim in spec.resource_claims),
        claim_templates={
            resource_claim.name: template
            for resource_claim in spec.resource_claims
            if (template := resource_claim.resource_claim_template_name)
        },
        class_askers=by_class.askers(
            containers=_claims_of(spec.containers), initContainers=_claims_of(spec.init_containers)
        ),
        volume_sources=frozenset(key for volume in spec.volumes for key in volume) - {"name"},
        is_grouped=is_set(spec.scheduling_group) or is_set(spec.workload_ref),
        hard_spreads=tuple(
            index
            for index, spread in enumerate(spec.topology_spread_constraints)
            if spread.when_unsatisfiable == "DoNotSchedule"
        ),
        required_pod_affinities=tuple(placing.pod_terms(affinity)),
        preferences=placing.preferences(affinity),
        gates=None if (gates := spec.scheduling_gates) is None else tuple(g.name for g in gates),
        finalizers=None if meta.finalizers is None else tuple(meta.finalizers),
        field_operations=tuple(field.operation for field in fields or ()),
        tolerations=tolerations,
        sizes=_sizes(pod, review, tolerations or ()),
    )


def _sizes(pod: _Pod, review: Review, tolerations: Iterable[Toleration]) -> Sizes:
    meta, spec = pod.metadata, pod.spec
    return caps.measure(
        grace_s=spec.termination_grace_period_seconds or 0,
        gang_size=kinds.declared_size(meta.annotations),
        labels=meta.labels,
        annotations=meta.annotations,
        terms=placing.node_values(spec.affinity),
        host_ports=sum(
            port.host_port != 0
            for container in (*spec.init_containers, *spec.containers)
            for port in container.ports or ()
        ),
        tolerations=[(toleration.key, toleration.operator) for toleration in tolerations],
        object_bytes=len(review.document) - len(bytes(meta.managed_fields)),
    )


def _resources(container: _Container) -> demand.Resources:
    resources = container.resources
    return demand.Resources(
        resources.requests, resources.limits, container.restart_policy == "Always"
    )


def _claims_of(containers: Sequence[_Container]) -> list[tuple[demand.Resources, list[str]]]:
    return [
        (_resources(container), [claim.name for claim in container.resources.claims])
        for container in containers
    ]
