"""Where the slurmrestd of a RestApi object is, and what its clients trust: names that slurm-operator and clients share."""

from collections.abc import Mapping
from typing import Final

SLURMRESTD_PORT: Final = 6820
"""Port of the Service, unless the object says otherwise."""
TLS_ANNOTATION: Final = "slurm-bridge.dev/tls"
"""Annotation of a RestApi; "off": it speaks plain HTTP."""
TLS_OFF: Final = "off"
TLS_SECRET_ANNOTATION: Final = "slurm-bridge.dev/tls-secret"  # noqa: S105  # a name
"""Annotation of a RestApi: the Secret with its certificate, instead of one from slurm-operator."""
TRUSTED: Final = "ca.crt"
"""Key of the ConfigMap with the CAs that clients trust, PEM."""


def service_name(rest_api: str) -> str:
    """Return the name of the Service of a RestApi."""
    return f"{rest_api}-restapi"


def tls_name(rest_api: str) -> str:
    """Return the name of the ConfigMap with the CAs that clients trust, and of the Secret that slurm-operator creates."""
    return f"{rest_api}-restapi-tls"


def speaks_tls(annotations: Mapping[str, str]) -> bool:
    """Check whether a RestApi with these annotations speaks TLS, the default."""
    return annotations.get(TLS_ANNOTATION) != TLS_OFF
