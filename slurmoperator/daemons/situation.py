"""The facts that one look at an object of the control plane reads, and the plan that is made from them: plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slurmoperator.configuration.partitions import PartitionReading
from slurmoperator.configuration.rendering import ConfigurationSet, FilesInForce
from slurmoperator.daemons.part import WatchedPart
from slurmoperator.daemons.rest_tls import TlsFacts, TlsPlan
from slurmoperator.keys.naming import KeyReference
from slurmoperator.keys.rotation import KeyRing, RotationDecision, RotationFacts
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.keys.tokens import SlurmToken
from slurmoperator.nodesets.conf_trials import ConfTrial
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.pod_status import PodStatus
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.objects.token import TokenObject
from slurmoperator.rendering.site import ControlSite
from slurmruntime.model.objects import JsonObject
from slurmruntime.values.errors import PeerError
from slurmruntime.values.faults import Fault

Data = Mapping[str, str]
"""The data of a Secret, still in base64, or of a ConfigMap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPod:
    """A pod of a daemon, with what its side-car wrote."""

    name: str
    status: PodStatus
    log: str = ""
    """Of the container that tries slurm.conf; "" if it was not read."""
    trouble: str = ""
    """Why the log was not read although it matters; "" if it was."""


@dataclass(frozen=True, slots=True)
class PendingVerdict:
    """Files that a daemon has not judged yet."""

    tag: str
    since: datetime
    nudges: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFacts:
    """What one look at a Controller has read."""

    part: ControllerObject
    site: ControlSite
    now: datetime
    accounting: AccountingObject | None = None
    """The one that it names; None if there is none, or it cannot be read."""
    node_sets: tuple[NodeSetObject, ...] = ()
    """Those that name it and can be read."""
    unreadable: tuple[Fault, ...] = ()
    """Faults of NodeSets that cannot be read: without them their nodes would go while jobs may run there."""
    config_maps: Mapping[str, Data] = field(default_factory=dict)
    """Those that it names and that exist."""
    ring: KeyRing | None = None
    """Of its daemons' key; None if it names none."""
    rotation: RotationFacts | None = None
    used_secrets: frozenset[str] = frozenset()
    """Secrets with keys that daemons of other objects, or workers, may use."""
    in_force: FilesInForce | None = None
    last: ConfigurationSet | None = None
    """The files that were desired last; None if there are none."""
    partitions: PartitionReading = field(default_factory=PartitionReading)
    pods: tuple[TrialPod, ...] = ()
    awaited: PendingVerdict | None = None
    awaited_nodes: PendingVerdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingFacts:
    """What one look at an Accounting has read."""

    part: AccountingObject
    site: ControlSite
    now: datetime
    ring: KeyRing | None = None
    used_secrets: frozenset[str] = frozenset()
    password: Data | None = field(default=None, repr=False)
    """The Secret with the password of the database; None if there is none."""
    in_force: FilesInForce | None = field(default=None, repr=False)
    pods: tuple[TrialPod, ...] = ()
    awaited: PendingVerdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestApiFacts:
    """What one look at a RestApi has read."""

    part: RestApiObject
    site: ControlSite
    now: datetime
    controller: ControllerObject | None = None
    """The one that it names; None if there is none, or it cannot be read. Then nothing else was read."""
    in_force: FilesInForce | None = None
    """The Controller's files; a RestApi does not get files that are still tried."""
    tls: TlsFacts | None = None
    ring: KeyRing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSetFacts:
    """What one look at a LoginSet has read."""

    part: LoginSetObject
    site: ControlSite
    now: datetime
    controller: ControllerObject | None = None
    sssd_conf: Data | None = field(default=None, repr=False)
    """The Secret with it; None if there is none."""
    ring: KeyRing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFacts:
    """What one look at a Token has read."""

    part: TokenObject
    now: datetime
    policy: TokenPolicy
    signing: Data | None = field(default=None, repr=False)
    """The Secret with the key that signs; None if there is none."""
    current: Data | None = field(default=None, repr=False)
    """The Secret with the token; None if there is none yet."""


DaemonFacts = ControllerFacts | AccountingFacts | RestApiFacts | LoginSetFacts | TokenFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesVerdict:
    """A daemon's verdict on the desired files, and the files that it serves with."""

    desired: ConfigurationSet = field(repr=False)
    """With the name of their write."""
    served: FilesInForce = field(repr=False)
    """The files that the daemon has until it has taken others."""
    refused: str
    """What the daemon does not accept; "" if it does, or if that is unknown."""
    not_tried: str
    """Why that is unknown; "" if it is known."""
    digest: str
    """Of the configuration in force; "" if no daemon has been seen serving with one."""
    awaited: PendingVerdict | None
    """The files on which there is no verdict; None if there is one."""
    is_pending: bool
    hurried_pods: tuple[str, ...] = ()
    """Pods whose kubelets are to bring the files now."""
    node_trials: Mapping[str, ConfTrial] = field(default_factory=dict)
    """slurmctld's verdicts on the nodes that workers will register, by the uid of the NodeSet."""
    awaited_nodes: PendingVerdict | None = None
    """Files whose nodes slurmctld has not judged yet; None if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadState:
    """How many of its pods are ready, and what the others wait for."""

    name: str
    desired: int
    ready: int
    pods: int
    """Ready or not."""
    is_updated: bool
    """Whether all pods are of the current template."""
    waits: tuple[str, ...] = ()
    deleted_claims: tuple[str, ...] = ()
    """Messages about its claims that are being deleted: their data goes with the pods."""

    @property
    def is_ready(self) -> bool:
        """Whether there is nothing to wait for."""
        return self.is_updated and self.ready == self.desired


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPlan:
    """What an object gets, and what is known of its configuration and keys."""

    refused: str = ""
    """What is wrong with the object or with what it refers to; then nothing is written."""
    is_blocked: bool = False
    """Whether nothing can be written: it is refused, or there has never been a configuration."""
    bodies: tuple[JsonObject, ...] = ()
    """Each as server-side apply takes it."""
    unwanted: tuple[JsonObject, ...] = ()
    """apiVersion, kind, name and namespace of what we may have created and that is no longer desired."""
    keys: tuple[KeyReference, ...] = ()
    are_keys_used: bool = False
    """Whether others may use its keys already, so that none is made in the place of a lost one."""
    configured: str | None = None
    """What is wrong with its configuration; "" if nothing is, None if it has none."""
    verdict: FilesVerdict | None = None
    """Of its daemon on that configuration; None if it was not asked."""
    kept_partitions: str = ""
    """Which partitions stay configured although the spec no longer has them, and why."""
    follow: frozenset[str] | None = None
    """The partitions of which Slurm is to be asked again; None if it need not be asked."""
    host_keys: LoginSetObject | None = None
    """The object itself, if its pods need host keys."""
    token: SlurmToken | None = None
    """The token for the Secret of a Token; None for other kinds."""
    tls: TlsPlan | None = None
    """The certificate of a slurmrestd; None if there is none."""
    ring: KeyRing | None = None
    """Of a Controller that has a key: with the step that its daemons get."""
    rotation: RotationDecision | None = None
    """Whether the next step of that is due; None if that was not decided."""
    due: timedelta | None = None
    """When to look again if no event comes first; None if it does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOutcome:
    """What came of a plan, and what was seen after it."""

    watched: WatchedPart
    """With our finalizer, if it got that."""
    refused: str = ""
    """Why it was not carried out to its end; "" if it was, or if a call failed."""
    refused_reason: str = "BadInput"
    failure: PeerError | None = None
    notes: tuple[str, ...] = ()
    """What the object asks for and does not get."""
    workloads: tuple[WorkloadState, ...] | None = None
    """As they were after the last step; None if they were not read."""

    @property
    def is_cut_short(self) -> bool:
        """Whether a step was refused or has failed."""
        return bool(self.refused) or self.failure is not None
