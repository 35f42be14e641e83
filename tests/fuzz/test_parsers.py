"""Everything that reads what others write: 10 000 inputs each, and no error but those it promises.

Inputs are made of the pieces that each form is made of, or are good ones with a part replaced: pure noise never gets far.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given

from bridge.domain.model import grant, identities
from bridge.domain.model.identities import UnreadableIdentityError
from bridge.domain.request import overrides, rules
from bridge.settings import policy_file as runtime_policy
from bridge.settings.schema import ENV_PREFIX, Settings
from slurmruntime.settings import sources
from slurmruntime.values import hostlist, names, quantities
from tests.fuzz.inputs import COMMENT, IDENTITY, batches, document, fuzzed, joined

_FIELDS = [*(field.name for field in overrides.FIELDS), *overrides.REFUSED, "nonsense", ""]
_VALUES = (
    *(field.example for field in overrides.FIELDS),
    *"0123456789:-@,|&.+TZ?",
    *("gres/", "gpu", "Mi", "singleton"),
)


@fuzzed
@given(batches(20))
def test_annotations(batch: list[bytes]) -> None:
    """Five bytes are a field: its name, and what its value is made of."""
    for data in batch:
        asked = {
            _FIELDS[data[start] % len(_FIELDS)]: joined(data[start + 1 : start + 5], _VALUES)
            for start in range(0, len(data), 5)
        }
        found, faults = overrides.parse(
            {f"{names.REQUEST_PREFIX}{name}": value for name, value in asked.items()}
        )
        taken = [name for name in found.__slots__ if getattr(found, name) is not None]
        assert len(taken) + len(faults) == len(asked)
        assert all(len(fault.text) < 2000 for fault in faults)


_QUANTITIES = (*"0123456789.+-eE", "Ki", "Mi", "Ei", "m", "n", "k", "e9")


@fuzzed
@given(batches(8))
def test_quantities(batch: list[bytes]) -> None:
    for data in batch:
        try:
            amount = quantities.parse(joined(data, _QUANTITIES))
        except ValueError:
            continue
        assert amount.is_finite()
        assert quantities.round_up(amount) <= 2**63


_HOSTLISTS = (*"0123456789[],-", "node", "gpu[1-3]", "[001-999999999]")


@fuzzed
@given(batches(10))
def test_hostlists(batch: list[bytes]) -> None:
    for data in batch:
        try:
            found = hostlist.expand(joined(data, _HOSTLISTS))
        except ValueError:
            continue
        assert len(found) <= hostlist.MOST.names
        assert found == hostlist.expand(hostlist.compress(found))


# -- what stands in Slurm and on pods -------------------------------------------------------------


_COMMENTS = ('"slurm-bridge"', '{"slurm-bridge":1,', '"cluster":', '"pods":[]', *'{}[]",:1')


@fuzzed
@given(batches(9))
def test_admin_comments(batch: list[bytes]) -> None:
    for data in batch:
        try:
            found = identities.decode(document(COMMENT, data, _COMMENTS))
        except UnreadableIdentityError:
            continue
        assert found is None or found == identities.decode(identities.encode(found))


_GRANT = json.loads(
    grant.encode(
        IDENTITY,
        grant.Grant(
            name="x", user="u", group="g", memory_mib_per_node=1, started_s=7, time_limit_min=5
        ),
    )
)


@fuzzed
@given(batches(9))
def test_grants(batch: list[bytes]) -> None:
    for data in batch:
        found = grant.decode(document(_GRANT, data, ('{"identity":', '"grant":', *'{}[]",:1')))
        again = None if found is None else grant.decode(grant.encode(*found))
        assert (found and found[1]) == (again and again[1])


# -- what administrators write --------------------------------------------------------------------


_SETTINGS = {
    "policy": {
        "creator_annotation": "a/b",
        "rules": [
            {
                "name": "a",
                "match": {
                    "namespaces": ["x*"],
                    "namespace_labels": {"k": "v"},
                    "users": ["u"],
                    "service_accounts": ["a/b"],
                },
                "user": "{namespace}",
                "user_table": {"x": "y"},
                "account": {"default": "{slurm_user}", "allowed": ["a?"]},
                "partition": {"default": "p", "allowed": ["q"]},
                "nice": {"min": -1, "max": 1},
                "time_limit_max_min": 5,
                "exclusive": False,
                "licenses": [],
            },
            {"name": "b", "user": "root"},
        ],
    },
    "slurm": {"user": "u", "group": "g"},
}


@pytest.fixture(scope="module")
def settings_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings") / "config.yaml"


_YAML = (
    *("policy:", " {rules: [", "name: a", "user: u", "\n", "  ", "- ", "}]"),
    *("&a", "*a", "!!python", "? ", "|", "0x", "2026-13-32"),
)


@fuzzed
@given(batches(9))
def test_policy_files(settings_file: Path, batch: list[bytes]) -> None:
    for data in batch:
        settings_file.write_text(document(_SETTINGS, data, _YAML), encoding="utf-8")
        try:
            read = sources.read(
                Settings, config=settings_file, environment={}, prefix=ENV_PREFIX, secrets_dir=None
            )
        except sources.Invalid:
            continue
        made = runtime_policy.compiled(read)
        asked = rules.Requester(user="u", groups=("g",))
        assert len(made.candidates(asked, "x1")) <= len(made.rules)


# -- what slurmrestd answers ----------------------------------------------------------------------
