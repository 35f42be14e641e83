"""What there is to be for an object, and whether a new configuration may come into force: pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bridge.domain import faults
from bridge.domain.faults import Fault, Refused, bounded
from cluster.configuration import changes, partitions, refusals, rendering, slurmdbd_conf
from cluster.configuration.changes import ConfigurationChange
from cluster.configuration.inputs import ConfigurationInputs
from cluster.configuration.parameters import COSTS_ONLY_JOBS, ChangeTakes
from cluster.configuration.partitions import NOT_READ, KeptPartition, SeenPartitions
from cluster.configuration.refusals import WrittenLine
from cluster.configuration.rendering import UNNAMED, ConfigurationSet
from cluster.controlplane.trials import TrialOutcome, TrialVerdict
from cluster.objects.accounting import AccountingObject
from cluster.objects.controller import ControllerObject
from cluster.objects.loginset import LoginSetObject
from cluster.objects.nodeset import NodeSetObject
from cluster.objects.restapi import RestApiObject
from cluster.rendering.access.tls import RestTls
from cluster.rendering.accounting import accounting_bodies
from cluster.rendering.body import PROVEN_ANNOTATION, Body
from cluster.rendering.controller import controller_bodies
from cluster.rendering.loginset import login_set_bodies
from cluster.rendering.restapi import restapi_bodies
from cluster.rendering.site import ControlSite

Bodies = Sequence[Mapping[str, Any]]
"""What Kubernetes is to have, each as server-side apply takes it."""
Made = Bodies | Refused

_MOST_NAMED: Final = 3
"""NodeSets in one message."""


@dataclass(frozen=True, slots=True)
class FilesInForce:
    """The files that daemons have."""

    files: ConfigurationSet
    is_proven: bool
    """Whether the daemon was seen to serve with them."""

    @classmethod
    def kept(cls, files: Mapping[str, str], annotations: Mapping[str, str]) -> "FilesInForce":
        """Return what an object of Kubernetes keeps, with its annotations."""
        digest, _, written = annotations.get(PROVEN_ANNOTATION, "").partition(" ")
        found = ConfigurationSet(files=files, made=frozenset(files), written=written or UNNAMED)
        return cls(found, is_proven=digest == found.digest)

    def is_proven_to_be(self, files: ConfigurationSet) -> bool:
        """Check whether this write of these is in force."""
        return self.is_proven and self.files.tag == files.tag


@dataclass(frozen=True, slots=True)
class BodyMakers:
    """How objects turn into what Kubernetes is to have."""

    site: ControlSite

    def controller(
        self,
        part: ControllerObject,
        served: FilesInForce,
        *,
        wanted: ConfigurationSet,
        key_step: int,
    ) -> Made:
        """Return all that belongs to a Controller with these files, these others to try, and this step of its key."""
        return _plain(
            controller_bodies(
                part,
                served.files,
                self.site,
                wanted=wanted,
                is_proven=served.is_proven,
                key_step=key_step,
            )
        )

    def accounting(
        self,
        part: AccountingObject,
        password: str,
        *,
        served: FilesInForce | None = None,
        key_step: int,
    ) -> Made:
        """Return all that belongs to an Accounting whose database has this password, and whose slurmdbd this file."""
        return _plain(
            accounting_bodies(
                part,
                password,
                self.site,
                in_force=served.files if served else None,
                is_proven=served is not None and served.is_proven,
                key_step=key_step,
            )
        )

    def rest_api(
        self,
        part: RestApiObject,
        controller: ControllerObject,
        files: ConfigurationSet,
        presented: RestTls | None,
        *,
        key_step: int,
    ) -> Made:
        """Return all that belongs to a RestApi of a Controller with these files, which speaks TLS with this."""
        return _plain(
            restapi_bodies(
                part, controller, files, self.site, presented=presented, key_step=key_step
            )
        )

    def login_set(
        self, part: LoginSetObject, controller: ControllerObject, *, secrets: str, key_step: int
    ) -> Made:
        """Return all that belongs to a LoginSet but its host keys; `secrets` is a digest of sssd.conf."""
        return _plain(
            login_set_bodies(part, controller, self.site, secrets=secrets, key_step=key_step)
        )


def _plain(found: tuple[Body, ...] | Refused) -> Made:
    return found if isinstance(found, Refused) else tuple(each.body for each in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedConfiguration:
    """The configuration that may come into force."""

    files: ConfigurationSet
    kept: str = ""
    """Which partitions stay although nobody wants them any more, and why; "" for none."""


@dataclass(frozen=True, slots=True)
class JudgingDaemon:
    """Who judges files."""

    name: str
    file: str
    """The one of them that users write in."""


SLURMCTLD: Final = JudgingDaemon("slurmctld", "slurm.conf")
SLURMDBD: Final = JudgingDaemon("slurmdbd", slurmdbd_conf.FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedFiles:
    """What a daemon makes of the files that are wanted; see `gathering.GatheredPart`."""

    served: FilesInForce
    """Those that daemons are to have until they have taken others."""
    refused: str
    not_tried: str
    digest: str
    tries: str


def judge(
    wanted: ConfigurationSet,
    tried: TrialVerdict,
    in_force: FilesInForce | None,
    daemon: JudgingDaemon,
    written: Iterable[WrittenLine],
) -> JudgedFiles:
    """Return what a daemon makes of files, in words, and which ones it has meanwhile.

    Args:
        wanted: the files.
        tried: what became of them.
        in_force: those that it has; None if there are none yet.
        daemon: whose they are.
        written: what users wrote in them.
    """
    # What is in force is tried again at a start, perhaps by another version; until then it counts.
    if tried.outcome is TrialOutcome.NOT_TRIED and in_force and in_force.is_proven_to_be(wanted):
        tried = TrialVerdict(outcome=TrialOutcome.TAKEN)
    is_taken = tried.outcome is TrialOutcome.TAKEN
    before = in_force if in_force is not None and in_force.is_proven else None
    served = before if before and not is_taken else FilesInForce(wanted, is_proven=is_taken)
    refused = ""
    if tried.outcome is TrialOutcome.REFUSED:
        refused = refusals.explained(
            tried.words,
            daemon.name,
            written,
            wanted=wanted.files.get(daemon.file, ""),
            in_force=before.files.files.get(daemon.file, "") if before else "",
        )
    is_kept = served.is_proven and not (refused and served.files.digest == wanted.digest)
    return JudgedFiles(
        served=served,
        refused=refused,
        not_tried=tried.words if tried.outcome is TrialOutcome.NOT_TRIED else "",
        digest=served.files.digest if is_kept else "",
        tries=wanted.tag if tried.is_coming else "",
    )


def configuration(
    inputs: ConfigurationInputs,
    in_force: Mapping[str, str] | None,
    ask: Callable[[frozenset[str]], SeenPartitions],
    coming: Mapping[str, str] | None = None,
) -> DecidedConfiguration | Refused:
    """Return the configuration that may come into force, or why what is in force stays.

    Args:
        inputs: All that it is made from.
        in_force: The files that the daemons have; None if there are none yet.
        ask: Returns what slurmctld has of some partitions; called only if some are to go, or if it matters whether there are jobs.
        coming: The files that were wanted last: the daemons may have taken them already.
    """
    found = rendering.render(inputs)
    if isinstance(found, Refused):
        return found
    if in_force is None:
        return DecidedConfiguration(files=found)
    there = [in_force] if coming is None else [in_force, coming]
    leaving = partitions.leaving(found.files, there)
    grave = _grave(in_force, found)
    seen = NOT_READ
    if not inputs.controller.spec.external and (
        leaving or any(each.item in COSTS_ONLY_JOBS for each in grave)
    ):
        seen = ask(leaving)
    if refused := bounded(_refused(inputs, grave, seen, _grave(there[-1], found))):
        return Refused(refused)
    kept: tuple[KeptPartition, ...] = ()
    if leaving and not inputs.controller.spec.external:
        kept = partitions.kept(found.files, there, seen)
        found = rendering.render(replace(inputs, kept_partitions=tuple(each.line for each in kept)))
    if isinstance(found, Refused):
        return found
    return DecidedConfiguration(files=found, kept=partitions.said(kept))


def _grave(files: Mapping[str, str], after: ConfigurationSet) -> tuple[ConfigurationChange, ...]:
    """Return the changes that would cost jobs, or the cluster."""
    before = ConfigurationSet(files=files, made=frozenset(files))
    # A slurmctld that moves here or away takes with it what is said for its own sake.
    moves = changes.runs_here(before) != changes.runs_here(after)
    return tuple(
        each
        for each in changes.compare(before, after)
        if each.takes is ChangeTakes.REFUSED and (each.is_in_both or not moves)
    )


def _refused(
    inputs: ConfigurationInputs,
    grave: Iterable[ConfigurationChange],
    seen: SeenPartitions,
    to_come: Iterable[ConfigurationChange],
) -> Iterator[Fault]:
    """Yield why changes may not come into force now.

    Args:
        inputs: What the configuration is made from.
        grave: The changes.
        seen: What slurmctld has.
        to_come: Those of them that were not decided before: for these it must have been seen just now.
    """
    fresh = {each.item for each in to_come}
    for each in grave:
        text = f"this cannot change while the cluster lives: {each.reason}"
        if each.item in COSTS_ONLY_JOBS and not inputs.controller.spec.external:
            stands = _stands(inputs.node_sets, seen)
            if not stands and not seen.is_sure and each.item in fresh:
                stands = "Slurm is asked once more"
            if not stands:
                continue
            text += f"; it can while no NodeSet wants workers and Slurm has neither jobs nor nodes for them: {stands}"
        yield Fault(f"{each.file} {each.item}", text)


def _stands(node_sets: Sequence[NodeSetObject], seen: SeenPartitions) -> str:
    """Return why there may be jobs, or may be soon; "" if there are none, and nothing to run one on."""
    wants = [
        each.metadata.name
        for each in node_sets
        if each.spec.replicas or each.spec.scaling_mode == "DaemonSet"
    ]
    if wants:
        more = ", …" if len(wants) > _MOST_NAMED else ""
        return f"workers are wanted by {', '.join(wants[:_MOST_NAMED])}{more}"
    if seen.trouble:
        return f"it is not known what it has: {faults.shortened(seen.trouble, 200)}"
    if seen.live:
        return f"it has {seen.live} jobs that run or wait"
    if seen.open_nodes:
        return f"{seen.open_nodes} nodes wait for jobs: drain them, or stop their slurmd"
    return ""
