"""Request annotations: every field's form, every fault told, and the documentation."""

import difflib
from datetime import UTC, datetime, timedelta, timezone

import pytest

from bridge.domain.request import overrides
from bridge.domain.request.overrides import Overrides
from slurmruntime.values import faults, names

SLINKY = [
    "account",
    "constraints",
    "cpu-per-task",
    "exclusive",
    "gres",
    "group-id",
    "job-name",
    "licenses",
    "max-nodes",
    "mem-per-node",
    "min-nodes",
    "partition",
    "priority",
    "qos",
    "reservation",
    "timelimit",
    "user-id",
    "wckey",
]


def parsed(**values: str) -> tuple[Overrides, list[str]]:
    """Underscores stand for dashes; the faults come as texts without the prefix."""
    found, faults = overrides.parse(
        {f"{names.REQUEST_PREFIX}{name.replace('_', '-')}": value for name, value in values.items()}
    )
    return found, [fault.text.replace(names.REQUEST_PREFIX, "") for fault in faults]


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("account", "physics", "physics"),
        ("begin", "2026-12-24T18:00:00Z", datetime(2026, 12, 24, 18, tzinfo=UTC)),
        (
            "deadline",
            "2026-12-24T18:00:00+01:00",
            datetime(2026, 12, 24, 18, tzinfo=timezone(timedelta(hours=1))),
        ),
        ("comment", " sweep 7, ünïcode ", "sweep 7, ünïcode"),
        ("constraints", "a100&(rack1|rack2)", "a100&(rack1|rack2)"),
        ("cpu_per_task", "1500m", 1500),
        ("dependency", "afterok:1:2+30,singleton", "afterok:1:2+30,singleton"),
        ("dependency", "afterany:1?afternotok:2", "afterany:1?afternotok:2"),
        ("exclusive", "TRUE", True),
        ("exclusive", "false", False),
        ("gres", "gpu:a100:2,gres/shard:4,nvme", "gres/gpu:a100:2,gres/shard:4,gres/nvme"),
        ("hold", "true", True),
        ("job_name", "train 7", "train 7"),
        ("licenses", "matlab:2,ansys@lic1", "matlab:2,ansys@lic1"),
        ("max_nodes", "1", 1),
        ("mem_per_node", "1.5Gi", 1536),
        ("mem_per_node", "1048577", 2),
        ("nice", "0", 0),
        ("nice", "-5", -5),
        ("partition", "gpu,debug", "gpu,debug"),
        ("priority", "4294967", 4294967),
        ("switches", "2@01:30:00", "2@01:30:00"),
        ("timelimit", "90", 90),
        ("timelimit", "10:30", 11),
        ("timelimit", "1:30:00", 90),
        ("timelimit", "2-0", 2880),
        ("timelimit", "1-12:30:01", 2191),
    ],
)
def test_a_value_is_read_into_slurms_units(field: str, text: str, value: object) -> None:
    found, faults = parsed(**{field: text})
    attribute = next(f.attribute for f in overrides.FIELDS if f.name == field.replace("_", "-"))

    assert [] == faults
    assert value == getattr(found, attribute)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("account", ""),
        ("account", "two words"),
        ("account", "a,b"),
        ("begin", "2026-12-24T18:00:00"),
        ("begin", "tomorrow"),
        ("begin", "now+1hour"),
        ("comment", " "),
        ("comment", "two\nlines"),
        ("comment", "x" * 1025),
        ("comment", "ü" * 513),
        ("constraints", "a & b"),
        ("cpu_per_task", "0"),
        ("cpu_per_task", "-1"),
        ("cpu_per_task", "four"),
        ("dependency", "afterok"),
        ("dependency", "afterok:0"),
        ("dependency", "expand:7"),
        ("dependency", "afterok:1,afterok:2?singleton"),
        ("exclusive", "yes"),
        ("exclusive", ""),
        ("gres", "gpu:0"),
        ("gres", "gpu:3,gpu:1"),
        ("gres", "gpu:1,gres/gpu"),
        ("gres", "gpu:a100:1,gpu:a100:2"),
        ("gres", "gpu:2,gpu:a100:2"),
        ("gres", "gpu:-1"),
        ("gres", "gpu,"),
        ("gres", "gpu:a100:2:4"),
        ("max_nodes", "0"),
        ("max_nodes", "1.0"),
        ("max_nodes", "99999999999"),
        ("mem_per_node", "4096"),
        ("mem_per_node", "0"),
        ("mem_per_node", "4 GB"),
        ("nice", "--5"),
        ("nice", "-"),
        ("partition", "gpu,,debug"),
        ("partition", "gpu, debug"),
        ("priority", "high"),
        ("switches", "1@"),
        ("switches", "1@soon"),
        ("timelimit", "0"),
        ("timelimit", "-5"),
        ("timelimit", "1h"),
        ("timelimit", "10 minutes"),
        ("timelimit", "0:00"),
        ("timelimit", "1-"),
        ("timelimit", "unlimited"),
        ("timelimit", "999999999999999999"),
        ("timelimit", "٩"),  # a digit, but not one of Slurm's
    ],
)
def test_another_form_is_a_fault_that_names_the_accepted_one(field: str, text: str) -> None:
    name = field.replace("_", "-")
    known = next(f for f in overrides.FIELDS if f.name == name)
    expected = (
        f"metadata.annotations[{name}]: expected {known.accepted}, such as {known.example}; "
        f"found {text[:80]!r}"
    )

    assert (Overrides(), [expected]) == parsed(**{field: text})


def test_every_fault_is_told_and_the_rest_is_read() -> None:
    found, faults = parsed(timelimit="soon", qos="high", exclusive="maybe", signal="USR1@60")

    assert Overrides(qos="high") == found
    assert [
        "metadata.annotations[exclusive]",
        "metadata.annotations[signal]",
        "metadata.annotations[timelimit]",
    ] == [fault.split(": ")[0] for fault in faults]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("time_limit", "did you mean timelimit?"), ("zzz", "there are account, begin,")],
)
def test_an_unknown_field_is_a_fault_that_helps(name: str, hint: str) -> None:
    _, (fault,) = parsed(**{name: "1"})

    assert "no such field" in fault
    assert hint in fault


@pytest.mark.parametrize("name", ["array", "requeue", "signal"])
def test_what_cannot_be_honoured_is_refused_in_words(name: str) -> None:
    _, (fault,) = parsed(**{name: "1"})

    assert f"metadata.annotations[{name}]: cannot be honoured: " in fault


def test_other_annotations_are_nobodys_business_here() -> None:
    assert (Overrides(), ()) == overrides.parse({"example.com/timelimit": "x", "timelimit": "y"})


@pytest.mark.parametrize("field", overrides.FIELDS, ids=lambda field: field.name)
def test_the_documented_example_is_accepted(field: overrides.Field) -> None:
    assert field.parse(field.example) is not None


def test_every_field_of_schedmds_bridge_is_known() -> None:
    assert set(SLINKY) <= {field.name for field in overrides.FIELDS}


def test_every_attribute_has_its_annotation() -> None:
    attributes = [field.attribute for field in overrides.FIELDS]

    assert sorted(attributes) == sorted(Overrides.__dataclass_fields__)


def bomb(count: int, name: str = "min-node{:04}") -> dict[str, str]:
    return {f"{names.REQUEST_PREFIX}{name.format(n)}": "x" for n in range(count)}


def test_far_too_many_fields_are_one_fault() -> None:
    asked, found = overrides.parse({**bomb(8000), f"{names.REQUEST_PREFIX}qos": "high"})

    assert Overrides() == asked
    assert ["expected at most 40 fields, found more"] == [fault.message for fault in found]


def test_a_field_with_a_very_long_name_is_one_fault() -> None:
    _, found = overrides.parse(bomb(40, "min-" + "x" * 40 + "{:02}"))

    assert 1 == len(found)
    assert "expected names of at most 30 characters, found 'min-xxx" in found[0].message


def test_many_unknown_fields_are_told_in_few_words_and_looked_at_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []

    def looks(name: str, *_: object, **__: object) -> list[str]:
        looked.append(name)
        return []

    monkeypatch.setattr(difflib, "get_close_matches", looks)
    _, found = overrides.parse(bomb(40))

    assert 3 == len(looked)
    assert faults.MOST_FAULTS == len(found)
    assert len(faults.one_line(found).encode()) <= faults.LONGEST_TEXT


@pytest.mark.parametrize("field", overrides.FIELDS, ids=lambda field: field.name)
def test_a_value_of_hundreds_of_kilobytes_is_not_read(field: overrides.Field) -> None:
    text = f"{field.example}," * 20_000

    _, found = overrides.parse({f"{names.REQUEST_PREFIX}{field.name}": text})

    assert 1 == len(found)
    assert len(found[0].text) < 500


def test_of_what_an_owner_asks_no_more_is_kept_than_is_looked_at() -> None:
    kept = overrides.requests(bomb(8000) | {f"{names.REQUEST_PREFIX}qos": "x" * 200_000})

    assert overrides.MOST_FIELDS + 1 == len(kept)
    assert all(len(value) < 5000 for value in kept.values())
