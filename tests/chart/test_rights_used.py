"""Every right of the chart's roles is used, and none is missing: what the API server's audit log says of a whole life.

A sandbox whose services have the tokens of the chart's service accounts and nothing more goes through all that they do; each
right that was never used would be one too many, each request refused one too few. Then each rule is taken away in turn: the
API server itself says that what was asked in that life would now be refused.
"""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
import yaml

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.chart.life import (
    OPTIONS,
    bind_an_unknown_pod,
    hold_back,
    live,
    lose_a_pod,
    own_pods,
    sign,
    signer,
    signs,
    use_volumes,
)
from tests.chart.rights import (
    Rule,
    Use,
    are_refused,
    asked,
    is_allowed,
    rules_in,
    taken_away,
)
from tests.integration.worlds import PATIENCE_S, Worlds
from tests.servers import fresh_namespace, running_sandbox, wait_until


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as own:
        yield own


@pytest.fixture(scope="module")
def rules(sandbox: Sandbox, helm: Path) -> Sequence[Rule]:
    """Those of the sandbox's release, and of the one that signs."""
    manifests = yaml.safe_load_all((sandbox.instance.bridge / "manifests.yaml").read_text())
    ours, signing = rules_in(filter(None, manifests)), rules_in(signer(helm))
    known = [rule.body for rule in ours]
    return [*ours, *(rule for rule in signing if signs(rule) and rule.body not in known)]


@pytest.fixture(scope="module")
def lived(sandbox: Sandbox, helm: Path) -> Sequence[Use]:
    """Go through everything; what was asked of the API server."""
    with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as namespace:
        worlds = Worlds(sandbox, namespace)
        live(worlds)
        own_pods(worlds)
        use_volumes(worlds)
        lose_a_pod(worlds)
        bind_an_unknown_pod(worlds)
        hold_back(worlds)
    asyncio.run(sign(sandbox, helm))
    return asked(sandbox)


def test_every_right_is_used(lived: Sequence[Use], rules: Sequence[Rule]) -> None:
    """And in `asked`: nothing was refused."""
    unused = {
        (rule.role, *right)
        for rule in rules
        for right in rule.rights()
        if not any(
            rule.covers(use) and right == (use.verb, use.group, use.resource) for use in lived
        )
    }

    assert not unused


def test_the_extender_reads_other_namespaces_than_the_one_that_names_the_cluster(
    lived: Sequence[Use],
) -> None:
    """A rule of the policy may ask for labels of any: that is why no name is in the role."""
    read = {use.name for use in lived if (use.verb, use.resource) == ("get", "namespaces")}

    assert read - {"kube-system", "slurm-bridge"}


def test_without_any_one_rule_something_of_that_life_is_refused(
    sandbox: Sandbox, lived: Sequence[Use], rules: Sequence[Rule]
) -> None:
    for rule in rules:
        uses = {(use.verb, use.group, use.resource): use for use in lived if rule.covers(use)}
        assert all(is_allowed(sandbox, use) for use in uses.values()), rule
        with taken_away(sandbox, rule):
            wait_until(partial(are_refused, sandbox, uses.values()), PATIENCE_S, sandbox=sandbox)
