"""The policy in force: reloaded when the settings file changes; the last valid one is kept.

A mounted ConfigMap is replaced while we run and sends no reliable file events, so the file is
polled every few seconds. Only the policy is reloaded; other settings need a restart.
"""

import asyncio
from pathlib import Path

import structlog

from bridge.domain.request.rules import Choice, Patterns, Policy, Rule
from bridge.settings.configuration import Sources
from bridge.settings.schema import Settings
from slurmruntime.process.clock import pause
from slurmruntime.process.metrics import Metrics
from slurmruntime.settings import sources as settings_sources

_log = structlog.get_logger(__name__)

POLL_S = 2.0
"""A stat of the file costs nothing; the kubelet takes up to a minute to update a ConfigMap."""

Version = tuple[int, int, int]


class PolicyFile:
    """The policy in force and the file it comes from."""

    def __init__(self, sources: Sources, settings: Settings, metrics: Metrics) -> None:
        """Start with settings that have just been read from the sources."""
        self._sources = sources
        self._metrics = metrics
        self._version = _version(sources.config)
        self._rules = settings.policy
        self.current = compiled(settings)
        """The policy in force."""
        metrics.policy.loaded(len(self.current.rules))

    async def run(self, stop: asyncio.Event) -> None:
        """Poll the file until `stop` is set."""
        while not stop.is_set():
            await pause(POLL_S, stop)
            version = _version(self._sources.config)
            if version != self._version:
                self._version = version
                await self.reload()

    async def reload(self) -> None:
        """Load the file's policy if the file has no faults at all."""
        try:
            # In a thread: a long file takes a second, too long for admission reviews to wait.
            settings = await asyncio.to_thread(self._sources.read)
        except settings_sources.Invalid as error:
            self._metrics.policy.refused()
            _log.error("policy.reload_refused", faults=error.faults, rules=len(self.current.rules))
            return
        changed = compiled(settings)
        self._metrics.policy.loaded(len(changed.rules))
        if settings.policy != self._rules:
            _log.info("policy.reloaded", rules=len(changed.rules), before=len(self.current.rules))
        self._rules, self.current = settings.policy, changed


def compiled(settings: Settings) -> Policy:
    """Return the policy of the settings.

    Without rules, `slurm.user` makes one rule: everyone's jobs belong to that user. Without
    `slurm.user` nothing may be submitted: Slurm would attribute the jobs to our token's user, whom no
    limit restricts.
    """
    section, slurm = settings.policy, settings.slurm
    reserved = Patterns(section.reserved_users)
    rules = tuple(
        rule.compiled(default_partition=slurm.partition, reserved=reserved)
        for rule in section.rules
    )
    if not rules and slurm.user:
        rules = (_only_rule(settings),)
    return Policy(
        rules=rules,
        creator_annotation=section.creator_annotation,
        controllers=Patterns(section.controllers),
        absence="neither policy.rules nor slurm.user is set",
    )


def _only_rule(settings: Settings) -> Rule:
    slurm = settings.slurm
    return Rule(
        name="slurm.user",
        source="setting slurm.user",
        user=slurm.user,
        group=slurm.group,
        account=Choice(default=slurm.account),
        partition=Choice(default=slurm.partition, allowed=Patterns("*")),
    )


def _version(file: Path | None) -> Version | None:
    """Return a value that changes whenever the file does; None if there is no file now."""
    try:
        status = file.stat() if file else None
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size) if status else None
