"""Where the slurmrestd of a RestApi object is, and how its clients know it: what slurm-operator makes, and they look for."""

from collections.abc import Mapping
from typing import Final

SLURMRESTD_PORT: Final = 6820
"""Of the Service, unless the object says otherwise."""
TLS_ANNOTATION: Final = "slurm-bridge.dev/tls"
"""On a RestApi, with the value "off": it speaks plain HTTP."""
TLS_OFF: Final = "off"
TLS_SECRET_ANNOTATION: Final = "slurm-bridge.dev/tls-secret"  # noqa: S105  # a name
"""On a RestApi: the Secret with the certificate that it presents, instead of one of slurm-operator's."""
TRUSTED: Final = "ca.crt"
"""Key of the ConfigMap with the CAs that clients trust, PEM."""


def service_name(rest_api: str) -> str:
    """Return the name of the Service of a RestApi."""
    return f"{rest_api}-restapi"


def tls_name(rest_api: str) -> str:
    """Return the name of the ConfigMap with what clients trust; and of the Secret with what is presented, if that is slurm-operator's."""
    return f"{rest_api}-restapi-tls"


def speaks_tls(annotations: Mapping[str, str]) -> bool:
    """Check whether a RestApi with these annotations speaks TLS, as all do that do not say otherwise."""
    return annotations.get(TLS_ANNOTATION) != TLS_OFF
