"""What there is to be for an object, and whether a new configuration may come into force: pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridge.domain.faults import Fault, Refused, bounded
from cluster.configuration import changes, partitions, rendering
from cluster.configuration.inputs import ConfigurationInputs
from cluster.configuration.parameters import ChangeTakes
from cluster.configuration.partitions import KeptPartition, SeenPartitions
from cluster.configuration.rendering import ConfigurationSet
from cluster.objects.accounting import AccountingObject
from cluster.objects.controller import ControllerObject
from cluster.objects.loginset import LoginSetObject
from cluster.objects.restapi import RestApiObject
from cluster.rendering.access.tls import RestTls
from cluster.rendering.accounting import accounting_bodies
from cluster.rendering.body import Body
from cluster.rendering.controller import controller_bodies
from cluster.rendering.loginset import login_set_bodies
from cluster.rendering.restapi import restapi_bodies
from cluster.rendering.site import ControlSite

Bodies = Sequence[Mapping[str, Any]]
"""What Kubernetes is to have, each as server-side apply takes it."""
Made = Bodies | Refused


@dataclass(frozen=True, slots=True)
class BodyMakers:
    """How objects turn into what Kubernetes is to have."""

    site: ControlSite

    def controller(
        self,
        part: ControllerObject,
        files: ConfigurationSet,
        *,
        wanted: ConfigurationSet,
        is_proven: bool,
        key_step: int,
    ) -> Made:
        """Return all that belongs to a Controller with these files, these others to try, and this step of its key."""
        return _plain(
            controller_bodies(
                part, files, self.site, wanted=wanted, is_proven=is_proven, key_step=key_step
            )
        )

    def accounting(self, part: AccountingObject, password: str, *, key_step: int) -> Made:
        """Return all that belongs to an Accounting whose database has this password."""
        return _plain(accounting_bodies(part, password, self.site, key_step=key_step))

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
        ask: Returns what slurmctld has of some partitions; called only if they are to go.
        coming: The files that were wanted last: the daemons may have taken them already.
    """
    found = rendering.render(inputs)
    if isinstance(found, Refused):
        return found
    if in_force is None:
        return DecidedConfiguration(files=found)
    kept: tuple[KeptPartition, ...] = ()
    there = [in_force] if coming is None else [in_force, coming]
    leaving = partitions.leaving(found.files, there)
    if leaving and not inputs.controller.spec.external:
        kept = partitions.kept(found.files, there, ask(leaving))
        found = rendering.render(replace(inputs, kept_partitions=tuple(each.line for each in kept)))
    if isinstance(found, Refused):
        return found
    before = ConfigurationSet(files=in_force, made=frozenset(in_force))
    # A slurmctld that moves here or away takes with it what is said for its own sake.
    moves = changes.runs_here(before) != changes.runs_here(found)
    refused = bounded(
        Fault(
            f"{each.file} {each.item}", f"this cannot change while the cluster lives: {each.reason}"
        )
        for each in changes.compare(before, found)
        if each.takes is ChangeTakes.REFUSED and (each.is_in_both or not moves)
    )
    return (
        Refused(refused)
        if refused
        else DecidedConfiguration(files=found, kept=partitions.said(kept))
    )
