"""Settings of the HTTPS servers."""

from pathlib import Path

from pydantic import Field

from slurmruntime.settings.values import Address, Section


class ServerSection(Section):
    """The HTTPS server of the webhook, and that of the scheduler extender."""

    listen: Address = Field("0.0.0.0:8443", description="Address and port.")
    cert_file: str = Field(
        "/etc/slurm-bridge/tls/tls.crt", min_length=1, description="Certificate chain, PEM."
    )
    key_file: str = Field(
        "/etc/slurm-bridge/tls/tls.key", min_length=1, description="Its private key, PEM."
    )


class Extender(Section):
    """The scheduler extender."""

    client_ca_file: str = Field(
        "", description="CA of client certificates, PEM; empty: clients need no certificate."
    )


class EscrowSection(Section):
    """The HTTPS server for slurmctld's scripts, in extender and controllers, with nodes.hybrid=escrow: docs/escrow.md."""

    listen: Address = Field("0.0.0.0:9443", description="Address and port.")
    token_file: str = Field(
        "/etc/slurm-bridge/escrow/token",
        min_length=1,
        description="File with the token that the scripts send, one per line while it is replaced. In the same folder are the server's certificate chain, tls.crt, and its private key, tls.key.",
    )

    @property
    def cert_file(self) -> str:
        """The certificate chain, PEM."""
        return str(Path(self.token_file).with_name("tls.crt"))

    @property
    def key_file(self) -> str:
        """Its private key, PEM."""
        return str(Path(self.token_file).with_name("tls.key"))
