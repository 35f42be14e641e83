"""The facts that one look at an object of the control plane reads, and the plan that is made from them: plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slurmoperator.daemons.deciding import PartitionReading
from slurmoperator.daemons.rest_tls import TlsFacts, TlsPlan
from slurmoperator.daemons.trials import FilesInForce, NodeTrials, PendingVerdict, TrialPod
from slurmoperator.keys.naming import KeyReference
from slurmoperator.keys.rotation import KeyRing, RotationDecision, RotationFacts
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.keys.tokens import SlurmToken
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.objects.token import TokenObject
from slurmoperator.rendering.site import ControlSite
from slurmruntime.model.objects import JsonObject
from slurmruntime.values.faults import Fault

Data = Mapping[str, str]
"""The data of a Secret, still in base64, or of a ConfigMap."""


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
    """Of that ring."""
    used_secrets: frozenset[str] = frozenset()
    """Secrets with keys that daemons of other objects, or workers, may use."""
    in_force: FilesInForce | None = None
    last: Data | None = None
    """The files that were desired last; None if there are none."""
    partitions: PartitionReading = field(default_factory=PartitionReading)
    pods: tuple[TrialPod, ...] = ()
    """Of slurmctld, if it is ours."""
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
    """As of a Controller."""
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
    """None if it speaks plain HTTP."""
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
class PartPlan:
    """What an object gets, and what is known of its configuration and keys."""

    refused: str = ""
    """What is wrong with the object or with what it refers to; then nothing is written."""
    bodies: tuple[JsonObject, ...] = ()
    """Each as server-side apply takes it."""
    unwanted: tuple[JsonObject, ...] = ()
    """apiVersion, kind, name and namespace of what we may have created and that is no longer desired."""
    keys: tuple[KeyReference, ...] = ()
    are_keys_used: bool = False
    """Whether others may use its keys already, so that none is made in the place of a lost one."""
    configured: str | None = None
    """What is wrong with its configuration; "" if nothing is, None if it has none."""
    not_tried: str = ""
    """Why it is unknown whether its daemon accepts the configuration; "" if it is known."""
    digest: str = ""
    """The digest of the configuration in force; "" if no daemon has been seen serving with one."""
    kept_partitions: str = ""
    """Which partitions stay configured although the spec no longer has them, and why."""
    follow: frozenset[str] | None = None
    """The partitions of which Slurm is to be asked again; None if it need not be asked."""
    awaited_tag: str = ""
    """The tag of a configuration on which there is no verdict; "" if there is one."""
    hurried_pods: tuple[str, ...] = ()
    """Pods of slurmctld whose kubelets are to bring that configuration now."""
    nodes: NodeTrials = field(default_factory=NodeTrials)
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

    @property
    def is_blocked(self) -> bool:
        """Whether nothing can be written: it is refused, or there has never been a configuration."""
        return bool(self.refused or (self.configured and not self.bodies))
