"""What an administrator writes for sshd holds: a real sshd says so, of every keyword that it has."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sandbox import assets, identity, nss, slurm
from sandbox.assets import AssetName
from slurmoperator.rendering.ssh import sshd_config

ENDS_S = 30
VALUES = ("no", "yes", "3", "none", "/etc/hostname", "VERBOSE", "all", "nobody", "a b", "local")
"""One of these fits, and is no default."""
MATCH = "Match User alice\n"
AS_ALICE = ("-C", "user=alice,host=example.org,addr=192.0.2.1,laddr=192.0.2.2,lport=22")
ALIASES = {
    "ChallengeResponseAuthentication no": "kbdinteractiveauthentication no",
    "SkeyAuthentication no": "kbdinteractiveauthentication no",
    "challengeresponseauthentication=no": "kbdinteractiveauthentication no",
    'KbdInteractiveAuthentication "no"': "kbdinteractiveauthentication no",
    "PermitRootLogin no": "permitrootlogin no",
    "X11Forwarding yes": "x11forwarding yes",
    "AuthorizedKeysCommand none": "authorizedkeyscommand none",
    "AuthorizedKeysCommandUser root": "authorizedkeyscommanduser root",
    "UsePAM no": "usepam no",
    "Subsystem sftp /bin/false": "subsystem sftp /bin/false",
    "Subsystem other /bin/false": "subsystem other /bin/false",
}
"""Lines about what we say something of, and how sshd tells it."""
OF_A_MATCH = [each for each in ALIASES if not each.startswith(("UsePAM", "Subsystem"))]

Effective = Callable[..., list[str] | None]


@pytest.fixture(scope="module")
def effective() -> Iterator[Effective]:
    """Return what sshd makes of a file, in small letters; None if it refuses it.

    It runs as another user than root, who would need a folder of the machine's own (/run/sshd).
    """
    asset = assets.resolve(AssetName.SLURM, report=lambda _: None)
    if not (asset.bin / "sshd").exists():
        pytest.skip("Slurm's programs are the machine's own, without sshd")
    user = identity.servers()
    folder = Path(tempfile.mkdtemp(prefix="sshd-"))
    nss.prepare(folder)
    with (folder / "passwd").open("a") as passwd:
        passwd.write("sshd:x:65533:65533::/run/sshd:/usr/sbin/nologin\n")
    key = folder / "key"
    key.write_bytes(
        Ed25519PrivateKey.generate().private_bytes(
            Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()
        )
    )
    key.chmod(0o600)
    for path in (folder, key):
        os.chown(path, user.uid, user.gid)
    environment = nss.environment(folder, slurm.libraries(asset))

    def ask(text: str, *arguments: str) -> list[str] | None:
        conf = folder / "sshd_config"
        conf.write_text(text.replace("HostKey /etc/ssh/", f"#{folder}"))
        done = subprocess.run(
            (asset.bin / "sshd", "-T", "-f", conf, "-h", key, *arguments),
            env={**os.environ, **environment},
            check=False,
            capture_output=True,
            text=True,
            timeout=ENDS_S,
            user=user.uid,
            group=user.gid,
            extra_groups=(),
        )
        return None if done.returncode else done.stdout.lower().splitlines()

    yield ask
    shutil.rmtree(folder)


def told(found: list[str] | None, keyword: str) -> list[str]:
    assert found is not None
    return [each for each in found if each.split()[0] == keyword]


@pytest.mark.parametrize("line", ALIASES)
def test_a_line_of_the_administrators_displaces_ours_under_each_of_its_names(
    effective: Effective, line: str
) -> None:
    found = effective(sshd_config(f"{line}\nMaxSessions 7\n"))

    assert ALIASES[line] in (found or [])
    assert "maxsessions 7" in (found or [])


@pytest.mark.parametrize("line", OF_A_MATCH)
def test_a_match_block_goes_before_ours_and_holds_for_those_whom_it_means(
    effective: Effective, line: str
) -> None:
    text = sshd_config(f"MaxSessions 7\n{MATCH}  {line}\n")
    keyword = ALIASES[line].split()[0]

    assert ALIASES[line] in (effective(text, *AS_ALICE) or [])
    others = ("-C", "user=bob,host=example.org,addr=192.0.2.1,laddr=192.0.2.2,lport=22")
    assert told(effective(sshd_config("")), keyword) == told(effective(text, *others), keyword)


def test_both_orders_of_two_names_are_as_sshd_has_them_without_us(effective: Effective) -> None:
    for lines in (
        "ChallengeResponseAuthentication no\nKbdInteractiveAuthentication yes\n",
        "KbdInteractiveAuthentication yes\nChallengeResponseAuthentication no\n",
    ):
        keyword = "kbdinteractiveauthentication"
        assert told(effective(lines), keyword) == told(effective(sshd_config(lines)), keyword)


@pytest.mark.slow  # it starts sshd some 500 times
def test_of_every_keyword_sshd_says_what_it_says_without_our_lines(effective: Effective) -> None:
    plain = effective("")
    assert plain is not None
    asked = 0
    for keyword in sorted({each.split()[0] for each in plain}):
        for value in VALUES:
            line = f"{keyword} {value}\n"
            alone = effective(line)
            if alone is None or told(alone, keyword) == told(plain, keyword):
                continue
            assert told(alone, keyword) == told(effective(sshd_config(line)), keyword), line
            asked += 1
            break
    assert asked > 40


def test_a_host_key_of_the_administrators_is_the_only_one() -> None:
    for line in ("HostKey /etc/ssh/mine", "hostdsakey=/etc/ssh/mine", 'HostKey "/etc/ssh/mine"'):
        text = sshd_config(line, host_keys=("ssh_host_rsa_key",))
        assert re.findall("ssh_host_rsa_key", text) == []
    text = sshd_config(f"{MATCH}  X11Forwarding yes", host_keys=("ssh_host_rsa_key",))
    assert text.index("ssh_host_rsa_key") < text.index("Match")
