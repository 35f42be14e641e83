"""Gather the Kubernetes facts for `doctor`. Objects are only created as a dry run."""

from asyncio import gather
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

import msgspec
import yaml

from bridge.domain.admission import selftest
from bridge.domain.model.claims import profiles
from bridge.domain.model.cores import agents
from bridge.domain.observation import clocks
from bridge.kube import writes
from bridge.kube.claims.resource_claims import CLASSES
from bridge.kube.claims.slices import SLICES
from bridge.settings.schema import Settings
from slurmcli import installation
from slurmcli.doctor import keys as examine_keys
from slurmcli.doctor.bindings import PolicyBindings, policy_bindings
from slurmcli.doctor.checks.kube import PROGRAMS, KubeFacts
from slurmcli.doctor.checks.rights import CLAIM_RIGHTS, RIGHTS, Right
from slurmcli.installation import OURS, Installation, config_map, excluded_namespaces
from slurmruntime.kube import lists, node_objects, paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import Forbidden, KubeError, NotFound
from slurmruntime.kube.leases import KubeLeases
from slurmruntime.model.nodes import KubeNodeFacts, is_hybrid
from slurmruntime.model.objects import JsonObject
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, KubeNode

T = TypeVar("T")

_ADMISSION = "admissionregistration.k8s.io/v1"

_DRY_RUN = {"dryRun": "All"}


_MOST_KUBELETS = 50
"""A dead one costs a time-out; all are asked at once."""


class _KubeletConfig(msgspec.Struct, rename="camel"):
    """`kubelet.config.k8s.io/v1beta1 KubeletConfiguration`."""

    cpu_manager_policy: str = "none"


class _Configz(msgspec.Struct):
    """The answer of a kubelet's `/configz`."""

    kubeletconfig: _KubeletConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeExamination:
    """The facts, and what the Slurm checks need of them."""

    facts: KubeFacts
    settings: Settings
    """The defaults if they may not be read or are invalid."""
    nodes: Sequence[KubeNodeFacts]
    cluster: ClusterId | None
    cpu_managers: Mapping[KubeNode, str]
    """The CPU manager policy of every kubelet that matters, if the caller may ask it and it answers."""
    agents: frozenset[KubeNode] | None
    """The nodes whose node agent is alive; None if agents are off, or their pods may not be listed."""


@dataclass(frozen=True, slots=True)
class _Hooks:
    kinds: frozenset[str]
    """`mutating`, `validating`."""
    has_last_word: bool


@dataclass(frozen=True, slots=True)
class _Leases:
    ages: Mapping[str, float | None]
    is_one_process: bool


class KubeExaminer:
    """Examines one cluster once."""

    def __init__(self, client: KubeClient, *, release: str, now: Callable[[], datetime]) -> None:
        """release: the namespace slurm-bridge is installed in."""
        self._client = client
        self._release = release
        self._now = now

    async def examine(self) -> KubeExamination:
        """Examine everything; leave out what the caller may not read.

        Raises:
            KubeError: the API server does not answer.
        """
        version = await self._get("/version")
        installed = await Installation.read(self._client, self._release)
        settings = installed.settings or Settings()
        has_profiles = bool(settings.controllers.device_profiles)
        labelled = await self._readable(self._labelled())
        excluded = await excluded_namespaces(self._client, self._release)
        selected = None if labelled is None else [name for name in labelled if name not in excluded]
        skew_s = await self._readable(self._skew_s())
        leases = await self._readable(self._leases(skew_s or 0.0))
        is_one = leases is not None and leases.is_one_process
        webhooks, policies, denied, refused_daemon_sets, key_holders = await gather(
            self._readable(self._webhooks()),
            self._readable(self._policies()),
            self._readable(self._denied(has_profiles=has_profiles, is_one_process=is_one)),
            self._readable(self._refused_daemon_sets()),
            self._readable(examine_keys.holders(self._client, release=self._release)),
        )
        admission, scheduler, nodes = await gather(
            self._admission(selected or (), settings.scheduler_name),
            self._scheduler(),
            lists.listing(self._client, node_objects.NODES),
        )
        return KubeExamination(
            facts=KubeFacts(
                version=(int(version["major"]), int(version["minor"].rstrip("+"))),
                skew_s=skew_s,
                release=self._release,
                settings_faults=installed.faults,
                scheduler_name=settings.scheduler_name,
                has_profiles=has_profiles,
                unserved=await self._readable(self._unserved(settings)) if has_profiles else None,
                scheduler=scheduler,
                webhooks=None if webhooks is None else webhooks.kinds,
                webhook_has_last_word=webhooks is None or webhooks.has_last_word,
                admission=admission,
                bindings=None if policies is None else policies.bindings,
                selecting_terms=1 if policies is None else policies.selecting_terms,
                direct_denies=policies is None or policies.direct_denies,
                has_taint=bool(settings.controllers.taint_effect),
                serves_slurm_jobs=settings.slurm_jobs.enabled,
                lease_ages=None if leases is None else leases.ages,
                is_one_process=is_one,
                denied=denied,
                selected_namespaces=None if selected is None else len(selected),
                refused_daemon_sets=refused_daemon_sets,
                key_holders=key_holders,
                without_effect=tuple(name for name in labelled or () if name in excluded),
            ),
            settings=settings,
            nodes=nodes,
            cluster=installed.cluster,
            cpu_managers=await self._cpu_managers(nodes, has_agents=settings.agent.pin_cores),
            agents=await installation.agents(self._client, self._release)
            if settings.agent.pin_cores
            else None,
        )

    # -- what the chart installed -----------------------------------------------------------------

    async def _scheduler(self) -> JsonObject | None:
        text = await config_map(
            self._client, self._release, component="scheduler", key="scheduler.yaml"
        )
        document = None if text is None else yaml.safe_load(text)
        return document if isinstance(document, dict) else None

    async def _unserved(self, settings: Settings) -> Sequence[str]:
        controllers = settings.controllers
        known = profiles.read(controllers.device_profiles)
        classes = await lists.readable(self._client, CLASSES)
        slices = await lists.readable(self._client, SLICES)
        drivers = {resource_slice.driver for resource_slice in slices}
        return list(profiles.unserved(known, classes, drivers, controllers.device_resources))

    async def _webhooks(self) -> "_Hooks":
        """Find our webhooks.

        A policy may mutate instead of a webhook (`admission.mutate: policy`), and the mutating webhook may also
        validate (`admission.calls: one`).
        """
        ours = {
            kind: await self._ours(_ADMISSION, f"{kind}webhookconfigurations")
            for kind in ("mutating", "validating")
        }
        has_kind = {kind: bool(configurations) for kind, configurations in ours.items()}
        has_kind["validating"] |= any(map(_does_both, ours["mutating"]))
        if not has_kind["mutating"]:
            policies = self._ours(_ADMISSION, "mutatingadmissionpolicies")
            has_kind["mutating"] = bool(await self._readable(policies))
        return _Hooks(
            frozenset(kind for kind, is_configured in has_kind.items() if is_configured),
            has_last_word=not any(map(_is_asked_again, _hooks(ours["mutating"])))
            and all(hook.get("failurePolicy") != "Ignore" for hook in _hooks(ours["validating"])),
        )

    async def _policies(self) -> PolicyBindings:
        return policy_bindings(
            await self._ours(_ADMISSION, "validatingadmissionpolicies"),
            await self._ours(_ADMISSION, "validatingadmissionpolicybindings"),
        )

    async def _refused_daemon_sets(self) -> Sequence[str]:
        """Return the DaemonSets whose new pods our policy refuses, as `namespace/name`."""
        bindings = await self._ours(_ADMISSION, "validatingadmissionpolicybindings")
        deny = [
            binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
            for binding in bindings
            if binding["metadata"]["name"].endswith("-daemonsets")
            and "Deny" in binding["spec"]["validationActions"]
        ]
        passing = {namespace for terms in deny for term in terms for namespace in term["values"]}
        daemon_sets = (await self._get("/apis/apps/v1/daemonsets"))["items"] if deny else []
        return [
            f"{daemon_set['metadata']['namespace']}/{daemon_set['metadata']['name']}"
            for daemon_set in daemon_sets
            if daemon_set["metadata"]["namespace"] not in passing
            and any(
                map(_tolerates, daemon_set["spec"]["template"]["spec"].get("tolerations") or [])
            )
        ]

    async def _ours(self, group: str, plural: str) -> Sequence[JsonObject]:
        answer = await self._get(paths.collection(group, plural), labelSelector=OURS)
        items: Sequence[JsonObject] = answer["items"]
        return items

    # -- whether it works -------------------------------------------------------------------------

    async def _labelled(self) -> Sequence[str]:
        label = f"{names.ENABLED_LABEL}=true,app.kubernetes.io/name!=slurm-bridge"
        namespaces = await self._get("/api/v1/namespaces", labelSelector=label)
        return [item["metadata"]["name"] for item in namespaces["items"]]

    async def _admission(self, selected: Sequence[str], scheduler_name: str) -> str | None:
        """Create a pod as a dry run: it passes the webhook and the policies, and is never stored."""
        if not selected:
            return None
        attributes = {"verb": "create", "resource": "pods", "namespace": selected[0]}
        kind = "SelfSubjectAccessReview"
        if not await self._review("selfsubjectaccessreviews", kind, attributes):
            return None
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "slurm-bridge-doctor-"},
            "spec": {"containers": [{"name": "main", "image": "none"}]},
        }
        try:
            created = await writes.dry_run_pod(self._client, selected[0], pod)
        except KubeError as error:
            return str(error)
        return selftest.not_handed_over(created, scheduler_name)

    async def _skew_s(self) -> float:
        """Compare clocks: an object created as a dry run carries the server's time."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "clock-"}}
        path = paths.collection("v1", "configmaps", self._release)
        asked = self._now()
        answer = await self._client.request("POST", path, body=body, params=_DRY_RUN)
        stamp = msgspec.json.decode(answer)["metadata"]["creationTimestamp"]
        return clocks.skew_s(datetime.fromisoformat(stamp), asked=asked, answered=self._now())

    async def _leases(self, skew_s: float) -> _Leases:
        leases, now = KubeLeases(self._client, self._release), self._now()
        held = {program: await leases.get(f"slurm-bridge-{program}") for program in PROGRAMS}
        ages = {
            program: installation.overdue_s(lease, now, skew_s) for program, lease in held.items()
        }
        holders = {lease.holder for lease in held.values() if lease is not None}
        return _Leases(ages, is_one_process=len(holders) == 1 and None not in ages.values())

    async def _cpu_managers(
        self, nodes: Sequence[KubeNodeFacts], *, has_agents: bool
    ) -> Mapping[KubeNode, str]:
        hybrid = [node.name for node in nodes if is_hybrid(node)]
        asked = (*hybrid, *(agents.wanted(nodes) if has_agents else ()))[:_MOST_KUBELETS]
        answers = await gather(*(cpu_manager(self._client, name) for name in asked))
        return {name: policy for name, policy in zip(asked, answers, strict=True) if policy}

    # -- rights, and the rest ---------------------------------------------------------------------

    async def _denied(self, *, has_profiles: bool, is_one_process: bool) -> Sequence[str]:
        needed = [*RIGHTS, *(CLAIM_RIGHTS if has_profiles else ())]
        if is_one_process:  # it has the extender's account
            needed = list(dict.fromkeys(replace(right, program=PROGRAMS[0]) for right in needed))
        answers = await gather(*map(self._is_allowed, needed))
        return [right.words for right, allowed in zip(needed, answers, strict=True) if not allowed]

    async def _is_allowed(self, right: Right) -> bool:
        resource, _, subresource = right.resource.partition("/")
        attributes = {
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "name": right.name,
            "namespace": self._release if right.is_own else "",
        }
        account = f"system:serviceaccount:{self._release}:slurm-bridge-{right.program}"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{self._release}"]
        return await self._review(
            "subjectaccessreviews", "SubjectAccessReview", attributes, user=account, groups=groups
        )

    async def _review(
        self, plural: str, kind: str, attributes: JsonObject, **who: str | Sequence[str]
    ) -> bool:
        group = "authorization.k8s.io/v1"
        spec = {"resourceAttributes": attributes, **who}
        body = {"apiVersion": group, "kind": kind, "spec": spec}
        answer = await self._client.request("POST", paths.collection(group, plural), body=body)
        return bool(msgspec.json.decode(answer)["status"]["allowed"])

    async def _readable(self, answer: Awaitable[T]) -> T | None:
        """Return None if the caller may not read it, or it does not exist."""
        try:
            return await answer
        except (Forbidden, NotFound):
            return None

    async def _get(self, path: str, **params: str) -> Any:
        return msgspec.json.decode(await self._client.request("GET", path, params=params))


async def cpu_manager(client: KubeClient, name: KubeNode) -> str:
    """Return the CPU manager policy of a node's kubelet; "" if we may not ask it or it does not answer."""
    try:
        path = f"{paths.collection('v1', 'nodes')}{paths.of(name)}/proxy/configz"
        body = await client.request("GET", path)
        return msgspec.json.decode(body, type=_Configz).kubeletconfig.cpu_manager_policy
    except (KubeError, msgspec.MsgspecError):
        return ""


def _tolerates(toleration: JsonObject) -> bool:
    """Return whether it tolerates the managed-node taint, by the same rule as policy `daemonsets`."""
    is_ours = toleration.get("key", "") in ("", names.MANAGED_NODE_TAINT)
    return is_ours and toleration.get("effect", "") in ("", "NoSchedule", "NoExecute")


def _does_both(configuration: JsonObject) -> bool:
    """Return whether this mutating configuration also validates everything that it mutates.

    Its hook for pods is then called again after other webhooks. SlurmJobs always have a validating hook.
    """
    hooks = list(_hooks([configuration]))
    return any(map(_is_asked_again, hooks)) and not any(
        "slurmjobs" in hook.get("name", "") for hook in hooks
    )


def _hooks(configurations: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for configuration in configurations:
        yield from configuration.get("webhooks", ())


def _is_asked_again(hook: JsonObject) -> bool:
    return bool(hook.get("reinvocationPolicy") == "IfNeeded")
