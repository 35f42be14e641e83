"""TLS of slurmrestd: certificates are made once, renewed, kept from others, or a user's own."""

import base64
from typing import Any

import pytest
from cryptography import x509

from tests.slurmoperator.daemons.peers import Leaders, controller, part, secret
from tests.slurmoperator.keys.own import users
from tests.virtual_time import VirtualClock, run

TLS, CA = "site-restapi-tls", "site-restapi-ca"
OFF = "slurm-bridge.dev/tls"
MINE = "slurm-bridge.dev/tls-secret"
DAY_S = 86_400.0


def rest_api(**annotations: str) -> Any:
    made = part("RestApi")
    marks = {"off": OFF, "mine": MINE}
    made["metadata"]["annotations"] = {marks[key]: each for key, each in annotations.items()}
    return made


def annotate(leaders: Leaders, **annotations: str) -> None:
    changed = rest_api(**annotations)
    changed["metadata"]["generation"] = 2
    leaders.api.put(changed)


async def with_rest_api(clock: VirtualClock, **annotations: str) -> Leaders:
    leaders = Leaders(clock)
    leaders.api.put(controller())
    leaders.api.put(rest_api(**annotations))
    await leaders.lead()
    return leaders


def pod_of(leaders: Leaders) -> Any:
    return leaders.api.of("Deployment")["site-restapi"]["spec"]["template"]["spec"]


def presented(leaders: Leaders) -> x509.Certificate:
    data = leaders.api.of("Secret")[TLS]["data"]["tls.crt"]
    return x509.load_pem_x509_certificate(base64.b64decode(data))


def test_slurmrestd_is_reached_by_tls_only_and_nothing_is_written_twice() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_rest_api(clock)
        assert ("True", "AllReady", "") == leaders.api.condition("RestApi", "Ready")
        (slurmrestd,) = pod_of(leaders)["containers"]
        assert "127.0.0.1:6821" == slurmrestd["args"][-1]
        assert not any("0.0.0.0" in arg for arg in slurmrestd["args"])  # noqa: S104  # nobody listens there
        made = leaders.api.of("Secret")
        mounted = str(pod_of(leaders)["volumes"])
        assert TLS in mounted
        assert CA not in mounted
        assert "RestApi" == made[CA]["metadata"]["ownerReferences"][0]["kind"]
        ca = leaders.api.of("ConfigMap")[TLS]["data"]["ca.crt"].encode()
        presented(leaders).verify_directly_issued_by(x509.load_pem_x509_certificate(ca))

        count = len(leaders.trouble.writes)
        await leaders.lead()
        assert [] == leaders.trouble.writes[count:]

    run(main)


def test_a_certificate_is_renewed_without_a_restart_and_a_lost_one_made_anew() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_rest_api(clock)
        first, pod = presented(leaders), pod_of(leaders)
        ca = leaders.api.of("ConfigMap")[TLS]["data"]["ca.crt"]
        await clock.sleep(61 * DAY_S)
        await leaders.lead()
        second = presented(leaders)
        assert second.not_valid_after_utc > first.not_valid_after_utc

        leaders.api.remove("Secret", TLS)
        await leaders.lead()
        assert second.serial_number != presented(leaders).serial_number
        assert ca == leaders.api.of("ConfigMap")[TLS]["data"]["ca.crt"]
        assert pod == pod_of(leaders)

    run(main)


def test_cas_of_somebody_else_are_not_touched() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        theirs = secret(CA, mine=b"theirs")
        for each in (controller(), theirs, rest_api()):
            leaders.api.put(each)
        await leaders.lead()
        assert theirs["data"] == leaders.api.of("Secret")[CA]["data"]
        status, reason, message = leaders.api.condition("RestApi", "Accepted")
        assert ("False", "BadInput") == (status, reason)
        assert f"Secret {CA}: it does not belong to this RestApi" in message

    run(main)


def test_without_tls_there_is_neither_side_car_nor_certificate() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_rest_api(clock)
        annotate(leaders, off="off")
        await leaders.lead()
        assert not pod_of(leaders).get("initContainers")
        assert "0.0.0.0:6820" == pod_of(leaders)["containers"][0]["args"][-1]
        assert TLS not in leaders.api.of("Secret")
        assert TLS not in leaders.api.of("ConfigMap")
        assert "True" == leaders.api.condition("RestApi", "Ready")[0]

    run(main)


@pytest.mark.parametrize("wish", ["no", "", "false"])
def test_another_wish_is_refused(wish: str) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_rest_api(clock, off=wish)
        status, _, message = leaders.api.condition("RestApi", "Accepted")
        assert "False" == status
        assert f"metadata.annotations[{OFF}]: expected off or no annotation" in message

    run(main)


def test_a_users_certificate_is_mounted_and_its_ca_is_shown_to_clients() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_rest_api(clock, mine="mine")
        told = leaders.api.condition("RestApi", "Accepted")[2]
        assert f"metadata.annotations[{MINE}]: there is no Secret mine" in told

        made = users(clock.now())
        theirs = secret(
            "mine", tls_crt=made["tls.crt"], tls_key=made["tls.key"], ca_crt=made["ca.crt"]
        )
        leaders.api.put(theirs)
        await leaders.lead()
        assert "'name': 'mine'" in str(pod_of(leaders)["volumes"])
        assert made["ca.crt"].decode() == leaders.api.of("ConfigMap")[TLS]["data"]["ca.crt"]
        assert TLS not in leaders.api.of("Secret")
        assert theirs["data"] == leaders.api.of("Secret")["mine"]["data"]
        assert "True" == leaders.api.condition("RestApi", "Ready")[0]

    run(main)


def test_a_users_certificate_of_another_name_is_told_and_what_runs_stays() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_rest_api(clock)
        before = pod_of(leaders)
        other = users()
        leaders.api.put(
            secret("mine", tls_crt=b"no PEM", tls_key=other["tls.key"], ca_crt=other["ca.crt"])
        )
        annotate(leaders, mine="mine")
        await leaders.lead()
        told = leaders.api.condition("RestApi", "Accepted")[2]
        assert "Secret mine: expected PEM" in told
        assert before == pod_of(leaders)

    run(main)
