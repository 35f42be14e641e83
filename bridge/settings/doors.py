"""Settings of the HTTPS servers."""

from typing import Annotated

from pydantic import AfterValidator, Field

from slurmruntime.settings import values as settings_values
from slurmruntime.settings.values import Address, Section


class TlsServer(Section):
    """An HTTPS server."""

    listen: Address = Field("0.0.0.0:8443", description="Address and port of the HTTPS server.")
    cert_file: str = Field(
        "/etc/slurm-bridge/tls/tls.crt", min_length=1, description="Certificate chain, PEM."
    )
    key_file: str = Field(
        "/etc/slurm-bridge/tls/tls.key", min_length=1, description="Its private key, PEM."
    )


class Webhook(TlsServer):
    """The admission webhook's HTTPS server."""

    track_fields: bool = Field(
        default=False,
        description="Keep metadata.managedFields, which say who wrote which field, on pods handed to Slurm; pods created by server-side apply always keep theirs. Without them, the API server does "
        "half the work at each write of a pod. A later server-side apply meets one manager, before-first-apply, of all fields there: other values need force, what was there stays when it is left out, and accounts are kept from then on.",
    )


class Extender(TlsServer):
    """The scheduler extender's HTTPS server."""

    client_ca_file: str = Field(
        "", description="CA of client certificates, PEM; empty: clients need no certificate."
    )


def _address_or_none(text: str) -> str:
    return text and settings_values.address(text)


class EscrowSection(TlsServer):
    """The HTTPS server for slurmctld's scripts, in extender and controllers: docs/escrow.md."""

    listen: Annotated[str, AfterValidator(_address_or_none)] = Field(
        "", description="Address and port, such as 0.0.0.0:9443; empty: there is none."
    )
    token_file: str = Field(
        "/etc/slurm-bridge/escrow/token",
        min_length=1,
        description="File with the token that the scripts send, one per line while it is replaced.",
    )
