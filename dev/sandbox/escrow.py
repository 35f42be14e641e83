"""PrologSlurmctld and EpilogSlurmctld of the bridge, installed as docs/escrow.md describes."""

import secrets
import shutil
from pathlib import Path

from sandbox import identity
from sandbox.instance import Instance, make_folder, write_private

SCRIPT = Path(__file__).parents[2] / "deploy" / "escrow" / "slurm-bridge-escrow"
PROGRAMS = ("extender", "controllers")
"""The programs with an endpoint for the script, in the order in which it asks them."""


def folder(instance: Instance) -> Path:
    """Return where the script and its settings are."""
    return instance.slurm / "escrow"


def script(instance: Instance) -> Path:
    """Return the script that slurmctld runs."""
    return folder(instance) / SCRIPT.name


def token_file(instance: Instance) -> Path:
    """Return the file with the token, as the bridge's programs read it."""
    return instance.bridge / "escrow-token"


def beside_certificate(instance: Instance, program: Path) -> Path:
    """Return the token in a folder with a program's certificate, as the chart mounts both; links show what is replaced."""
    folder = program / "escrow"
    folder.mkdir(exist_ok=True)
    for target in (token_file(instance), program / "tls.crt", program / "tls.key"):
        link = folder / target.name.removeprefix("escrow-")
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return folder / "token"


def urls(instance: Instance) -> tuple[str, ...]:
    """Return the URLs of the programs' endpoints."""
    programs = (name for name in PROGRAMS if name in instance.options.services)
    return tuple(instance.url(f"{name}-escrow", "https") for name in programs)


def prepare(instance: Instance) -> None:
    """Create the token, the script and its settings; the certificates must exist."""
    if not instance.options.escrow:
        return
    user, where = identity.servers(), make_folder(folder(instance), identity.servers())
    token = secrets.token_hex(32)
    write_private(token_file(instance), token)
    write_private(where / "token", token, user)
    authority = (instance.bridge / "serving-ca.crt").read_bytes()
    write_private(where / "ca.crt", authority, user)
    shutil.copyfile(SCRIPT, script(instance))
    script(instance).chmod(0o755)
    configure(instance)


def configure(instance: Instance, **changed: object) -> None:
    """Write the script's settings, with some of them changed."""
    where = folder(instance)
    settings = {
        "URLS": " ".join(urls(instance)),
        "TOKEN_FILE": where / "token",
        "CA_FILE": where / "ca.crt",
        **changed,
    }
    text = "".join(f"{name}='{value}'\n" for name, value in settings.items())
    write_private(where / f"{SCRIPT.name}.conf", text, identity.servers())
