"""Types of settings, and how their values are parsed from one line of text."""

import ipaddress
import json
import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):(?P<port>[0-9]{1,5})")
_MAX_PORT = 65535


def address(text: str) -> str:
    """Return the text if it is HOST:PORT; raise ValueError otherwise."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > _MAX_PORT:
        raise ValueError("must be HOST:PORT, such as 0.0.0.0:8443 or [::]:8443")
    return text


def _http_url(text: str) -> str:
    if re.fullmatch(r"https?://[^\s/]+(/\S*)?", text) is None:
        raise ValueError("must be a URL such as http://slurmrestd:6820")
    return text.rstrip("/")


def _host(text: str) -> str:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        if re.fullmatch(r"[^\s/:\[\]]+", text) is None:
            raise ValueError("must be a host name or an address, without a port") from None
    return text


def is_exposed(url: str) -> bool:
    """Check whether a URL sends its requests in clear to a host that may be outside the cluster.

    Loopback addresses and Services are not: `slurmrestd`, `slurmrestd.slurm.svc`, and the same with
    the cluster's domain.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme != "http" or host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        _name, *domain = host.split(".")
        return bool(domain) and domain[1:2] != ["svc"]


def split(value: object) -> object:
    """Parse a list from one line of text: `a, b`."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def null(value: object) -> object:
    """Parse the word `null`, YAML's spelling of absence."""
    return None if value == "null" else value


def parse_json(value: object) -> object:
    """Parse a map, or a list of maps, from one line of JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"must be JSON: {error}") from error


Address = Annotated[str, AfterValidator(address)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
TEXT_OR_TEXTS: Final = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
        ]
    }
)
"""For settings that used to take one value: a single text is a list of one."""

_SEVERAL: Final = (BeforeValidator(split), Field(min_length=1), TEXT_OR_TEXTS)
HttpUrls = Annotated[tuple[HttpUrl, ...], *_SEVERAL]
Hosts = Annotated[tuple[Annotated[str, AfterValidator(_host)], ...], *_SEVERAL]
TextMap = Annotated[dict[str, str], BeforeValidator(parse_json)]
Port = Annotated[int, Field(ge=1, le=_MAX_PORT)]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Section(BaseModel):
    """Base of all sections: unknown fields are forbidden, instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)
