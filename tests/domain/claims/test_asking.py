"""What a pod's claims ask Slurm for."""

from dataclasses import replace

import pytest

from bridge.domain.model.claims import asking, by_class, profiles
from bridge.domain.model.claims.asking import Asking, ClaimInHand
from bridge.domain.model.claims.values import ClaimSpec, DeviceClass, DeviceRequest, PodClaim
from slurmruntime.values.faults import Refusal

PROFILES = profiles.read(
    {"device.driver == 'gpu.example.com'": "gpu:a100", "device.driver == 'n'": "nic"}
)
CLASSES = {
    "gpu": DeviceClass(name="gpu", selectors=("device.driver == 'gpu.example.com'",)),
    "nic": DeviceClass(name="nic", selectors=("device.driver == 'n'",)),
    "odd": DeviceClass(name="odd", selectors=("device.driver.startsWith('n')",)),
}


def claim(
    *requests: DeviceRequest, index: int = 0, name: str = "mine", others: tuple[str, ...] = ()
) -> ClaimInHand:
    return ClaimInHand(
        index=index,
        entry=PodClaim(entry=f"e{index}", claim=name),
        spec=ClaimSpec(requests=requests),
        others=others,
    )


def refused(asked: Asking) -> Refusal:
    with pytest.raises(Refusal) as refusal:
        asking.gres(asked, PROFILES)
    return refusal.value


def test_the_requests_of_all_claims_add_up() -> None:
    found = asking.gres(
        Asking(
            claims=(
                claim(
                    DeviceRequest(name="a", device_class="gpu", count=2),
                    DeviceRequest(name="b", device_class="nic"),
                ),
                claim(DeviceRequest(name="a", device_class="gpu"), index=1, name="more"),
            ),
            classes=CLASSES,
        ),
        PROFILES,
    )

    assert found == {"gpu:a100": 3, "nic": 1}


def test_everything_that_is_wrong_is_told_at_once() -> None:
    refusal = refused(
        Asking(
            claims=(
                claim(
                    DeviceRequest(
                        name="a",
                        device_class="gpu",
                        unusable=("exactly.adminAccess", "exactly.selectors"),
                    ),
                    DeviceRequest(name="b", unusable=("firstAvailable",)),
                    DeviceRequest(name="c", device_class="none"),
                    DeviceRequest(name="d", device_class="odd"),
                    DeviceRequest(name="e", device_class="gpu", count=40),
                    others=("neighbour",),
                ),
                ClaimInHand(index=1, entry=PodClaim(entry="e1", template="t"), spec=None),
            ),
            classes=CLASSES,
        )
    )

    told = [fault.text for fault in refusal.faults]
    for words in (
        "spec.resourceClaims[0]: claim mine is used by pod neighbour",
        "requests[0].exactly.adminAccess: cannot be honoured: devices that others use",
        "requests[0].exactly.selectors: cannot be honoured: Slurm chooses the devices",
        "requests[1].firstAvailable: cannot be honoured: Slurm is asked for one kind",
        "requests[2].exactly.deviceClassName: there is no DeviceClass none",
        "requests[3].exactly.deviceClassName: DeviceClass odd maps to no GRES in Slurm",
        "expected at most 32 devices",
        "spec.resourceClaims[1]: there is no template t",
    ):
        assert sum(words in each for each in told) == 1, (words, told)
    assert len(told) == 8


def test_a_claim_that_a_pod_names_twice_is_refused() -> None:
    twice = claim(DeviceRequest(name="a", device_class="gpu"))
    refusal = refused(
        Asking(
            claims=(twice, claim(*twice.spec.requests, index=1) if twice.spec else twice),
            classes=CLASSES,
        )
    )

    assert "claim mine is named twice" in refusal.text


def test_each_request_is_told_with_what_it_becomes() -> None:
    known = DeviceRequest(name="a", device_class="gpu", count=2)
    unknown = DeviceRequest(name="b", device_class="odd")
    gone = DeviceRequest(name="c", device_class="none")

    found = asking.in_words(
        Asking(claims=(claim(known, unknown, gone),), classes=CLASSES), PROFILES
    )

    assert [
        "e0/a: 2 of gpu = gpu:a100",
        "e0/b: 1 of odd = no GRES",
        "e0/c: 1 of none = no GRES",
    ] == list(found)


OURS = by_class.template("gpu", 2)
_REQUEST = DeviceRequest(name="devices", device_class="gpu", count=2)
AS_NAMED = ClaimSpec(requests=(_REQUEST,))


@pytest.mark.parametrize(
    "said",
    [
        replace(AS_NAMED, config=({"opaque": {"driver": "d", "parameters": {}}},)),
        replace(AS_NAMED, constraints=1),
        replace(AS_NAMED, requests=(replace(_REQUEST, count=1),)),
        replace(AS_NAMED, requests=(replace(_REQUEST, device_class="nic"),)),
        replace(AS_NAMED, requests=(replace(_REQUEST, unusable=("exactly.adminAccess",)),)),
        replace(AS_NAMED, requests=(_REQUEST, replace(_REQUEST, name="more"))),
        ClaimSpec(),
    ],
)
@pytest.mark.parametrize("claim", ["", "p-slurm-bridge-0-x7k2p"])
def test_a_template_of_our_name_and_its_claims_say_what_the_name_says(
    said: ClaimSpec, claim: str
) -> None:
    """Whoever may create templates in a namespace would decide what its other users get."""
    entry = PodClaim(entry="slurm-bridge-0", claim=claim, template=OURS)

    def faults(spec: ClaimSpec) -> str:
        hand = ClaimInHand(index=0, entry=entry, spec=spec)
        return refused(Asking(claims=(hand,), classes=CLASSES)).text

    as_named = ClaimInHand(index=0, entry=entry, spec=AS_NAMED)
    assert asking.gres(Asking(claims=(as_named,), classes=CLASSES), PROFILES)
    name = f"claim {claim}" if claim else f"template {OURS}"
    assert f"{name} does not ask for what the template name {OURS}" in faults(said)


def test_other_templates_say_what_their_authors_want() -> None:
    entry = PodClaim(entry="mine", template="my-slurm-bridge-2-of-gpu")
    config = ({"opaque": {"driver": "d", "parameters": {}}},)
    hand = ClaimInHand(index=0, entry=entry, spec=replace(AS_NAMED, config=config))

    assert {"gpu:a100": 2} == asking.gres(Asking(claims=(hand,), classes=CLASSES), PROFILES)
