"""LoginSets: what is made of them, once; and what is told."""

from typing import Any

import pytest

from slurmoperator.rendering.ssh import HOST_KEY_FILES
from tests.slurmoperator.daemons.peers import Leaders, controller, part, secret
from tests.virtual_time import VirtualClock, run

SSSD = secret("site-sssd", sssd_conf=b"[sssd]\n")
HOST_KEYS = "site-ssh-host-keys"


async def with_login_set(clock: VirtualClock, **changes: Any) -> Leaders:
    leaders = Leaders(clock)
    for each in (controller(), SSSD, part("LoginSet", **changes)):
        leaders.api.put(each)
    await leaders.lead()
    return leaders


def test_pods_are_made_with_host_keys_that_stay() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_login_set(clock, replicas=2)

        made = leaders.api.made()
        assert {
            ("ConfigMap", "site-ssh-config"),
            ("Service", "site"),
            ("Deployment", "site"),
        } < made
        keys = leaders.api.of("Secret")[HOST_KEYS]
        assert keys["immutable"]
        assert set(HOST_KEY_FILES) == keys["data"].keys()
        assert "LoginSet" == keys["metadata"]["ownerReferences"][0]["kind"]
        assert ("True", "Accepted", "") == leaders.api.condition("LoginSet", "Accepted")
        assert ("True", "AllReady", "") == leaders.api.condition("LoginSet", "Ready")
        told = leaders.api.of("LoginSet")["site"]["status"]
        assert 2 == told["replicas"]
        assert "app.kubernetes.io/instance=site,app.kubernetes.io/name=login" == told["selector"]

        count = len(leaders.trouble.writes)
        await leaders.lead()
        assert [] == leaders.trouble.writes[count:]

        leaders.api.change("LoginSet", "site", replicas=3, extraSshdConfig="MaxSessions 3")
        await leaders.lead()
        assert 3 == leaders.api.of("LoginSet")["site"]["status"]["replicas"]
        assert (
            "MaxSessions 3" in leaders.api.of("ConfigMap")["site-ssh-config"]["data"]["sshd_config"]
        )
        assert keys == leaders.api.of("Secret")[HOST_KEYS]

    run(main)


def test_another_sssd_conf_restarts_the_pods_and_the_same_one_does_not() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_login_set(clock)
        before = leaders.api.of("Deployment")["site"]["spec"]["template"]
        leaders.api.put({**SSSD, "metadata": {**SSSD["metadata"], "labels": {"a": "b"}}})
        await leaders.lead()
        assert before == leaders.api.of("Deployment")["site"]["spec"]["template"]

        leaders.api.put(secret("site-sssd", sssd_conf=b"[sssd]\ndebug_level = 3\n"))
        await leaders.lead()
        assert before != leaders.api.of("Deployment")["site"]["spec"]["template"]

    run(main)


def test_lost_host_keys_are_told_and_not_replaced_while_pods_have_them() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_login_set(clock)
        leaders.api.remove("Secret", HOST_KEYS)
        await leaders.lead()
        assert HOST_KEYS not in leaders.api.of("Secret")
        status, reason, message = leaders.api.condition("LoginSet", "Accepted")
        assert ("False", "BadInput") == (status, reason)
        assert f"Secret {HOST_KEYS}: it is missing, and login pods run with its keys" in message

        leaders.api.remove("Deployment", "site")
        await leaders.lead()
        assert HOST_KEYS in leaders.api.of("Secret")
        assert "True" == leaders.api.condition("LoginSet", "Ready")[0]

    run(main)


def test_host_keys_of_a_user_are_taken_as_they_are() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        theirs = secret(HOST_KEYS, **dict.fromkeys(HOST_KEY_FILES, b"theirs"))
        theirs["data"] = dict.fromkeys(HOST_KEY_FILES, "dGhlaXJz")
        for each in (controller(), SSSD, theirs, part("LoginSet")):
            leaders.api.put(each)
        await leaders.lead()
        assert theirs["data"] == leaders.api.of("Secret")[HOST_KEYS]["data"]
        assert "True" == leaders.api.condition("LoginSet", "Ready")[0]

        del theirs["data"]["ssh_host_rsa_key.pub"]
        leaders.api.put(theirs)
        await leaders.lead()
        told = leaders.api.condition("LoginSet", "Accepted")[2]
        assert f"Secret {HOST_KEYS}: it has no ssh_host_rsa_key.pub" in told

    run(main)


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("Controller", "spec.controllerRef.name: there is no Controller site"),
        ("Secret", "spec.sssdConfRef.name: there is no Secret site-sssd"),
        ("key", "spec.sssdConfRef.key: Secret site-sssd has no sssd.conf"),
    ],
)
def test_what_is_missing_is_told_and_waited_for(missing: str, told: str) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        empty = secret("site-sssd", other=b"x")
        given = {"Controller": [SSSD], "Secret": [controller()], "key": [controller(), empty]}
        for each in (*given[missing], part("LoginSet")):
            leaders.api.put(each)
        await leaders.lead()
        status, reason, message = leaders.api.condition("LoginSet", "Accepted")
        assert ("False", "BadInput") == (status, reason)
        assert told in message
        assert {} == leaders.api.of("Deployment") or missing != "Controller"

        for each in (controller(), SSSD):
            if each["kind"] != "Controller" or missing == "Controller":
                leaders.api.put(each)
        await leaders.lead()
        assert "True" == leaders.api.condition("LoginSet", "Ready")[0]

    run(main)
