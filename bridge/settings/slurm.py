"""The schema of the settings about Slurm."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from slurmruntime.settings import values as settings_values
from slurmruntime.settings.values import Hosts, HttpUrls, Port, Seconds, Section
from slurmruntime.values import quantities


class Slurm(Section):
    """How to reach Slurm, and common parameters of all placeholders."""

    url: HttpUrls = Field(
        ("http://slurmrestd:6820",),
        description="Base URL of slurmrestd; of several, the next is used when one cannot be "
        "reached or does not answer.",
    )
    controller: str = Field(
        "",
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z]([-a-z0-9]*[a-z0-9])?)?$",
        description="A Controller object of slurm-operator, as namespace/name, whose Slurm to use. Its RestApi and its token key "
        "then replace url and token_file, and its Service replaces controller_host unless that is set.",
    )
    insecure: bool = Field(
        default=False,
        description="Allow http to hosts outside the cluster: everyone on the way can read the "
        "token and act as any user. Without it, http is only for loopback addresses and Services: "
        "NAME, NAME.NAMESPACE.svc.",
    )
    token_file: str = Field(
        "/etc/slurm-bridge/slurm/token",
        min_length=1,
        description="File with the Slurm token (JWT); reread when it changes.",
    )
    ca_file: str = Field(
        "",
        description="CA to trust if url is https, or with controller_tls, PEM; empty: the system's CAs.",
    )
    cert_file: str = Field(
        "", description="Our own certificate chain for slurmrestd, PEM; empty: none."
    )
    key_file: str = Field("", description="Its private key, PEM; goes with cert_file.")
    request_timeout_s: Seconds = Field(10, description="Time-out of one request to slurmrestd.")
    controller_host: Hosts = Field(
        ("slurmctld",),
        description="Host of slurmctld, to which the ends of pods are reported; with backups, all hosts of "
        "SlurmctldHost.",
    )
    controller_port: Port = Field(6817, description="SlurmctldPort of slurmctld.")
    controller_tls: bool = Field(
        default=False,
        description="Speak TLS to controller_host, with ca_file, cert_file and key_file; otherwise "
        "the token is sent in clear. For a TLS proxy in front of slurmctld, or TLSType=tls/s2n.",
    )
    kick: bool = Field(
        default=False,
        description="Start slurmctld's scheduler as soon as a job of ours is submitted or has ended, "
        "not only at its next full second: docs/install.md says how, and what it costs.",
    )
    partition: str = Field("", description="Partition of the jobs; empty: Slurm's default.")
    user: str = Field(
        "", description="Slurm user of all jobs, without policy.rules; empty: pods are rejected."
    )
    group: str = Field("", description="Group of the jobs; goes with user, both or neither.")
    account: str = Field(
        "", description="Account of all jobs, without policy.rules; empty: the user's default."
    )
    milli_cpu_per_cpu: Annotated[int, Field(ge=50, le=quantities.MILLI)] = Field(
        quantities.MILLI,
        description="Size of one of Slurm's CPUs in thousandths of a Kubernetes CPU; must divide 1000. "
        "With 100, a node of 16 CPUs has 160 in Slurm, and a pod of 100m takes one of them: "
        "docs/small-pods.md says what else that changes.",
    )
    mcs_label: str = Field("", description="MCS label of the jobs; empty: none.")
    over_time_limit_min: Annotated[int, Field(ge=0)] = Field(
        0, description="Slurm's OverTimeLimit, which pods also get on top of their time limit."
    )

    @model_validator(mode="after")
    def _token_is_not_sent_in_clear(self) -> Self:
        exposed = [url for url in self.url if settings_values.is_exposed(url)]
        if exposed and not self.insecure:
            raise ValueError(
                "url must be https outside the cluster, or insecure: true must accept that everyone "
                f"on the way can read the token, found url={', '.join(exposed)}"
            )
        return self

    @model_validator(mode="after")
    def _cpus_divide_into_whole_ones(self) -> Self:
        if quantities.MILLI % self.milli_cpu_per_cpu:
            raise ValueError(
                f"{quantities.MILLI} must be a multiple of milli_cpu_per_cpu, found {self.milli_cpu_per_cpu}"
            )
        return self

    @model_validator(mode="after")
    def _certificate_goes_with_key(self) -> Self:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError(
                f"cert_file and key_file go together, "
                f"found cert_file={self.cert_file!r}, key_file={self.key_file!r}"
            )
        return self

    @model_validator(mode="after")
    def _user_goes_with_group(self) -> Self:
        if bool(self.user) != bool(self.group):
            raise ValueError(
                f"user and group go together (Slurm would take the token's group), "
                f"found user={self.user!r}, group={self.group!r}"
            )
        return self
