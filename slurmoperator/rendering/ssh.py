"""Renders sshd and sssd of login pods and workers: configuration and files."""

import re
from collections.abc import Sequence
from typing import Final

from slurmoperator.objects.parts import KeyOfObject
from slurmoperator.rendering import pods
from slurmruntime.model.objects import JsonDict, JsonObject

SSH_PORT: Final = 22
SSHD_FILE: Final = "sshd_config"
KEYS_FILE: Final = "authorized_keys"
HOST_KEYS: Final = ("ssh_host_rsa_key", "ssh_host_ed25519_key", "ssh_host_ecdsa_key")
"""Files of the Secret with a LoginSet's host keys; the public ones end in .pub."""
HOST_KEY_FILES: Final = tuple(f"{file}{end}" for file in HOST_KEYS for end in ("", ".pub"))
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

_LOOKED_AT: Final = re.compile(
    r"^(?:[^\S\n]|[=\"])*+(?:match|hostkey|hostdsakey|subsystem)(?![\w-])[^\n]*",
    re.IGNORECASE | re.MULTILINE,
)
"""The lines that decide where ours go, and a few more; a user's file may have 64 KiB of others."""
_EMPTY: Final = re.compile(r"^\n", re.MULTILINE)


def sshd_config(extra: str, *, host_keys: Sequence[str] = ()) -> str:
    """Return sshd_config; the user's lines override ours.

    sshd uses the first of two values, under any name of the keyword, so the user's lines come first. Their Match blocks come last,
    because such a block ends only with the next one or the file, and its values take precedence over global ones. Without host
    keys (files in /etc/ssh), sshd uses its defaults.
    """
    extra = extra.strip()
    keywords: set[str] = set()
    at = len(extra)
    for line in _LOOKED_AT.finditer(extra):
        if _words(line[0])[:1] == ["match"]:
            at = line.start()
            break
        keywords |= _list_entries(line[0])
    ours = [
        f"{key} {value}" for key, value in _OURS if not _list_entries(f"{key} {value}") & keywords
    ]
    keys = [f"HostKey /etc/ssh/{file}" for file in host_keys if "hostkey" not in keywords]
    return _EMPTY.sub("", "\n".join((extra[:at], *ours, *keys, extra[at:], "")))


def _list_entries(line: str) -> set[str]:
    """Return the keys of a line that adds to a list, where the first value does not win: host keys, and named subsystems."""
    match _words(line):
        case ["hostkey" | "hostdsakey", *_]:
            return {"hostkey"}
        case ["subsystem", name, *_]:
            return {f"subsystem {name}"}
        case _:
            return set()


def _words(line: str) -> list[str]:
    """Split a line into keyword and words; sshd ignores the keyword's case and accepts = after it."""
    words = line.replace("=", " ", 1).replace('"', " ").split()
    return [words[0].lower(), *words[1:]] if words else []


def config_volume(config_map: str, files: Sequence[str]) -> JsonDict:
    """Return the volume with the named files of a ConfigMap."""
    sources = [pods.config_file(KeyOfObject(name=config_map, key=file), file) for file in files]
    return pods.projected(_CONFIG_VOLUME, 0o600, sources)


def host_keys_volume(secret: str) -> JsonDict:
    """Return the volume with the host keys."""
    items = [
        {"key": file, "path": file, "mode": 0o644 if file.endswith(".pub") else 0o600}
        for file in HOST_KEY_FILES
    ]
    return pods.projected(_HOST_KEYS_VOLUME, 0o600, [{"secret": {"name": secret, "items": items}}])


def sssd_volume(key: KeyOfObject) -> JsonDict:
    """Return the volume with sssd.conf, which only its owner may read: sssd insists."""
    return pods.projected(_SSSD_VOLUME, 0o600, [pods.secret_file(key, "sssd.conf")])


def mounts(*, of_login: bool) -> list[JsonObject]:
    """Return the mounts of the files, one by one, because the image has other files in the same folders.

    Login pods also have host keys and root's authorized keys.
    """
    mounted_files = [
        (_CONFIG_VOLUME, SSHD_FILE, "/etc/ssh"),
        (_SSSD_VOLUME, "sssd.conf", "/etc/sssd"),
    ]
    if of_login:
        mounted_files.append((_CONFIG_VOLUME, KEYS_FILE, "/root/.ssh"))
        mounted_files += [(_HOST_KEYS_VOLUME, file, "/etc/ssh") for file in HOST_KEY_FILES]
    return [
        {"name": volume, "mountPath": f"{folder}/{file}", "subPath": file, "readOnly": True}
        for volume, file, folder in mounted_files
    ]
