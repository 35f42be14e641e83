"""sshd and sssd of login pods and workers: their configuration and their files."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from slurmoperator.objects.parts import KeyOfObject
from slurmoperator.rendering import pods

SSH_PORT: Final = 22
SSHD_FILE: Final = "sshd_config"
KEYS_FILE: Final = "authorized_keys"
HOST_KEYS: Final = ("ssh_host_rsa_key", "ssh_host_ed25519_key", "ssh_host_ecdsa_key")
"""Files of the Secret with a LoginSet's host keys; the public ones end in .pub."""
HOST_KEY_FILES: Final = tuple(f"{file}{end}" for file in HOST_KEYS for end in ("", ".pub"))
"""All of them."""
_CONFIG_VOLUME: Final = "ssh-config"
_HOST_KEYS_VOLUME: Final = "ssh-host-keys"
_SSSD_VOLUME: Final = "sssd-conf"
_OURS: Final = (
    ("PermitRootLogin", "prohibit-password"),
    ("UsePAM", "yes"),
    ("KbdInteractiveAuthentication", "yes"),
    ("AuthorizedKeysCommand", "/usr/bin/sss_ssh_authorizedkeys %u"),
    ("AuthorizedKeysCommandUser", "nobody"),
    ("X11Forwarding", "no"),
    ("Subsystem", "sftp internal-sftp"),
)


def sshd_config(extra: str, *, host_keys: Sequence[str] = ()) -> str:
    """Return sshd_config; what the user says displaces ours.

    sshd takes the first of two values, under whichever of a keyword's names: the user's lines stand first, but for their Match
    blocks. These stand last, as such a block has no end, and what it says goes before what holds for all.

    Args:
        extra: the user's lines.
        host_keys: files in /etc/ssh; without any, sshd looks for those that it knows.
    """
    lines = extra.strip().split("\n")
    at = next((i for i, line in enumerate(lines) if _words(line)[:1] == ["match"]), len(lines))
    theirs, blocks = lines[:at], lines[at:]
    said = {key for line in theirs for key in _collected(line)}
    ours = [f"{key} {value}" for key, value in _OURS if not _collected(f"{key} {value}") & said]
    keys = [f"HostKey /etc/ssh/{file}" for file in host_keys if "hostkey" not in said]
    return "".join(f"{line}\n" for line in (*theirs, *ours, *keys, *blocks) if line)


def _collected(line: str) -> set[str]:
    """Return what a line adds to a list of which sshd does not take the first: host keys, and a subsystem of a name."""
    match _words(line):
        case ["hostkey" | "hostdsakey", *_]:
            return {"hostkey"}
        case ["subsystem", name, *_]:
            return {f"subsystem {name}"}
        case _:
            return set()


def _words(line: str) -> list[str]:
    """Return keyword and words of a line; sshd reads the keyword in any case, and takes = for a blank after it."""
    words = line.replace("=", " ", 1).replace('"', " ").split()
    return [words[0].lower(), *words[1:]] if words else []


def config_volume(config_map: str, files: Sequence[str]) -> dict[str, Any]:
    """Return the volume with sshd_config and what else is named."""
    sources = [pods.config_file(KeyOfObject(name=config_map, key=file), file) for file in files]
    return pods.projected(_CONFIG_VOLUME, 0o600, sources)


def host_keys_volume(secret: str) -> dict[str, Any]:
    """Return the volume with host keys."""
    items = [
        {"key": f"{file}{end}", "path": f"{file}{end}", "mode": mode}
        for file in HOST_KEYS
        for end, mode in (("", 0o600), (".pub", 0o644))
    ]
    return pods.projected(_HOST_KEYS_VOLUME, 0o600, [{"secret": {"name": secret, "items": items}}])


def sssd_volume(key: KeyOfObject) -> dict[str, Any]:
    """Return the volume with sssd.conf, which sssd wants for itself alone."""
    return pods.projected(_SSSD_VOLUME, 0o600, [pods.secret_file(key, "sssd.conf")])


def mounts(*, of_login: bool) -> list[Mapping[str, Any]]:
    """Return where the files go: one by one, as the folders have others of the image.

    Args:
        of_login: whether host keys and root's authorized keys are among them.
    """
    found = [(_CONFIG_VOLUME, SSHD_FILE, "/etc/ssh"), (_SSSD_VOLUME, "sssd.conf", "/etc/sssd")]
    if of_login:
        found.append((_CONFIG_VOLUME, KEYS_FILE, "/root/.ssh"))
        found += [
            (_HOST_KEYS_VOLUME, f"{file}{end}", "/etc/ssh")
            for file in HOST_KEYS
            for end in ("", ".pub")
        ]
    return [
        {"name": volume, "mountPath": f"{folder}/{file}", "subPath": file, "readOnly": True}
        for volume, file, folder in found
    ]
