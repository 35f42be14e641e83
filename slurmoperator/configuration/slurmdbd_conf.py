"""slurmdbd.conf, from an Accounting and the password of its database."""

from collections.abc import Iterator
from typing import Final

from slurmoperator.configuration import checking, lines, slurm_conf
from slurmoperator.configuration.refusals import UserLine
from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.objects.accounting import AccountingObject
from slurmruntime.values.faults import Fault, require_none

FILE: Final = "slurmdbd.conf"
_OURS_ALONE: Final = {
    "dbdhost": "it names the pod that runs slurmdbd",
    "dbdport": "the Service and the probe use it",
    "slurmuser": "the image runs slurmdbd as this user",
    "authtype": "the pod has only its key",
    "storagehost": "it is spec.storageConfig.host",
    "storageport": "it is spec.storageConfig.port",
    "storageuser": "it is spec.storageConfig.username",
    "storageloc": "it is spec.storageConfig.database",
    "storagepass": "it is in the Secret of spec.storageConfig.passwordKeyRef",
    "authaltparameters": "it follows from the keys",
}


def text(accounting: AccountingObject, password: str) -> str:
    """Return the file; "" for an external slurmdbd. It contains the password, so it belongs in a Secret."""
    storage = accounting.spec.storage_config
    if accounting.spec.external or storage is None:
        return ""
    base = {
        "DbdHost": f"{accounting.metadata.name}-accounting-0",
        "DbdPort": str(slurm_conf.SLURMDBD_PORT),
        "SlurmUser": "slurm",
        **{
            setting.key: setting.value
            for setting in slurm_conf.authentication(
                has_jwks=accounting.spec.jwks_key_ref is not None
            )
            if setting.key != "CredType"
        },
        "StorageType": "accounting_storage/mysql",
        "StorageHost": storage.host,
        "StoragePort": str(storage.port),
        "StorageUser": storage.username,
        "StorageLoc": storage.database,
        "StoragePass": _escaped(password),
        "LogFile": "/dev/null",
    }
    by_key = {key.lower(): key for key in base}
    rest = ""
    for setting in lines.settings(accounting.spec.extra_conf):
        if (key := by_key.get(setting.key.lower())) is None:
            rest += f"{setting.key}={_escaped(setting.value)}\n"
        elif key == "AuthInfo":
            both = (*lines.words(base[key]), *lines.words(setting.value))
            base[key] = ",".join(dict.fromkeys(both))
        else:
            base[key] = setting.value
    return "".join(f"{key}={value}\n" for key, value in base.items() if value) + rest


def file(accounting: AccountingObject, password: str) -> ConfigurationSet:
    """Return the file as a set for slurmdbd to try.

    Raises:
        Refusal: `extraConf` has more lines than are read.
    """
    require_none(lines.excess(accounting.spec.extra_conf))
    return ConfigurationSet(files={FILE: text(accounting, password)})


def user_lines(accounting: AccountingObject) -> Iterator[UserLine]:
    """Yield the lines that a user wrote, as they appear in the file."""
    for line in lines.read(accounting.spec.extra_conf):
        for setting in line.settings:
            rendered = f"{setting.key}={_escaped(setting.value)}"
            yield UserLine(f"spec.extraConf line {line.number}", rendered, (setting,))


def faults(accounting: AccountingObject, password: str) -> Iterator[Fault]:
    """Find faults in `extraConf`, and a password that the file cannot hold."""
    yield from checking.check(FILE, accounting.spec.extra_conf, "spec.extraConf")
    for line in lines.read(accounting.spec.extra_conf):
        for setting in line.settings:
            if why := _OURS_ALONE.get(setting.key.lower()):
                at = f"spec.extraConf line {line.number}"
                yield Fault(at, f"{setting.key} cannot be set here: {why}")
    yield from slurm_conf.misread_lines(FILE, text(accounting, ""))
    if any(character in password for character in '"\n\r\0'):
        why = "slurmdbd.conf cannot hold a password with quotation marks, line breaks or NUL characters"
        yield Fault("spec.storageConfig.passwordKeyRef", why)


def _escaped(value: str) -> str:
    """Escape a value: Slurm drops backslashes, and cuts at # and at blanks."""
    return lines.quoted(value.replace("\\", "\\\\").replace("#", "\\#"))
