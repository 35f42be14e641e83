"""Which DeviceClass is which GRES."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.model.claims import profiles
from bridge.domain.model.claims.values import Device, DeviceClass, DeviceId

A100 = "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].model == 'a100'"
HAS_MODEL = "has( device.attributes['gpu.example.com'].model )"
PROFILES = profiles.read({"device.driver == 'gpu.example.com'": "gpu:any", A100: "gpu:a100"})


@pytest.mark.parametrize(
    ("selectors", "gres"),
    [
        (("device.driver == 'gpu.example.com'",), "gpu:any"),
        (('device.driver=="gpu.example.com"',), "gpu:any"),
        ((A100,), "gpu:a100"),
        (tuple(reversed(A100.split(" && "))), "gpu:a100"),
        ((f"{HAS_MODEL} && {A100}",), "gpu:a100"),
        ((f"{A100} && {HAS_MODEL}",), "gpu:a100"),
        ((f"device.driver == 'gpu.example.com' && {HAS_MODEL}",), None),
        ((f"!{HAS_MODEL} && {A100}",), None),
        (("device.driver == 'gpu.other.com'",), None),
        (("device.driver != 'gpu.example.com'",), None),
        (("device.driver == 'gpu.example.com' || true",), None),
        (("device.driver == 'gpu.example.com' &&",), None),
        (("!(device.driver == 'gpu.example.com')",), None),
        ((f"{A100} && device.attributes['gpu.example.com'].index == 1",), None),
        (("device.driver == 'gpu.example.com'", ""), None),
        ((), None),
    ],
)
def test_a_class_is_a_profile_s_if_both_select_the_same(
    selectors: tuple[str, ...], gres: str | None
) -> None:
    found = profiles.of_class(DeviceClass(name="c", selectors=selectors), PROFILES)

    assert (found.gres if found else None) == gres


@given(st.text(max_size=60) | st.text("devicrl.='\"&[]()! ab0", max_size=60))
def test_a_selector_that_cannot_be_read_is_of_no_profile(text: str) -> None:
    found = profiles.parse(text)

    assert found is None or text.strip().startswith("device.")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"true": "gpu"}, "expected device.driver"),
        ({"device.attributes['a.b'].c == 1": "gpu"}, "expected device.driver"),
        ({"device.driver == 'a'": "gpu", 'device.driver == "a"': "nic"}, "the same devices"),
    ],
)
def test_profiles_that_cannot_be_told_apart_are_refused(
    settings: dict[str, str], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        profiles.read(settings)


def test_all_faults_of_profiles_are_told_with_their_selectors() -> None:
    with pytest.raises(ValueError) as told:  # noqa: PT011  # the words are below
        profiles.read(
            {
                "true": "gpu",
                "device.driver == 'a'": "nic",
                "device.driver == 'b'": "nic:fast",
                'device.driver == "b"': "fpga",
            }
        )

    assert 3 == len(str(told.value).split("; "))
    assert "['true']: expected device.driver" in str(told.value)
    assert "[\"device.driver == 'b'\"]: nic has no type in another profile" in str(told.value)
    assert "['device.driver == \"b\"']: another profile selects" in str(told.value)


@pytest.mark.parametrize(("value", "selected"), [("a100", True), ("h100", False), (1, False)])
def test_a_profile_selects_devices_by_their_attributes(value: str | int, selected: bool) -> None:
    device = Device(
        id=DeviceId("gpu.example.com", "n1", "gpu-0"), attributes={"gpu.example.com/model": value}
    )

    assert PROFILES[0].selects(device)
    assert PROFILES[1].selects(device) is selected


def test_truth_is_not_a_number() -> None:
    [profile] = profiles.read(
        {"device.driver == 'd' && device.attributes['d'].shared == true": "gpu"}
    )
    device = Device(id=DeviceId("d", "n1", "gpu-0"), attributes={"d/shared": 1})

    assert not profile.selects(device)


def test_a_profile_without_a_class_or_a_driver_is_told() -> None:
    found = profiles.read({"device.driver == 'a'": "gpu", "device.driver == 'b'": "nic"})
    classes = [DeviceClass(name="c", selectors=("device.driver == 'a'",))]

    assert not list(profiles.unserved(found[:1], classes, {"a"}, {}))
    assert [
        "no node has devices of driver a (gpu)",
        "no DeviceClass selects the devices of nic",
    ] == list(profiles.unserved(found, classes, {"b"}, {}))


def test_a_resource_name_that_stands_for_no_class_or_that_nobody_set_is_told() -> None:
    found = profiles.read({"device.driver == 'a'": "gpu"})
    selectors = ("device.driver == 'a'",)
    classes = [
        DeviceClass(name="set", selectors=selectors, resource="x.test/set"),
        DeviceClass(name="unset", selectors=selectors, resource="x.test/unset"),
        DeviceClass(name="others", selectors=("true",), resource="x.test/others"),
    ]
    resources = {"x.test/set": "set", "x.test/own": "set", "x.test/lost": "lost"}

    assert [
        "x.test/lost stands for DeviceClass lost, which does not exist or has no profile",
        (
            "DeviceClass unset has extendedResourceName x.test/unset, which device_resources does "
            "not have: pods that request it get no claim"
        ),
    ] == list(profiles.unserved(found, classes, {"a"}, resources))
