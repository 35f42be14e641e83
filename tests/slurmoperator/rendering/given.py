"""Objects of a cluster as Slinky's charts write them, and all that is made of them."""

from typing import Any, TypeVar

import msgspec

from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.rendering.access.tls import RestTls
from slurmoperator.rendering.accounting import accounting_bodies
from slurmoperator.rendering.controller import controller_bodies
from slurmoperator.rendering.loginset import host_keys_body, login_set_bodies
from slurmoperator.rendering.node_sets.nodeset import node_set_bodies
from slurmoperator.rendering.restapi import restapi_bodies
from slurmoperator.rendering.site import ControlSite, SlurmImages
from slurmoperator.rendering.ssh import HOST_KEYS
from slurmruntime.model.objects import JsonObject
from tests.slurmoperator.examples import BY_NAME, manifest

T = TypeVar("T")
SITE = ControlSite(
    images=SlurmImages(
        **{
            name: f"example.test/{name}:26.05"
            for name in ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "login")
        }
    )
)
FILES = ConfigurationSet(
    files={"slurm.conf": "ClusterName=site\nSlurmdPort=6818\n", "prolog.sh": "#!/bin/sh\n"},
)
MADE_FOR = ("Controller", "Accounting", "RestApi", "LoginSet", "NodeSet")
PRESENTED = RestTls(
    mounted="site-restapi-tls",
    trusted=b"CA\n",
    secret_data={"tls.crt": b"certificate", "tls.key": b"key"},
)
KEYS = {f"{file}{end}": b"key" for file in HOST_KEYS for end in ("", ".pub")}


def given(kind: str, name: str = "site", /, namespace: str = "slurm", **changes: Any) -> Any:
    """An object as the API server returns it; a change to `...` takes the field away."""
    body = manifest(kind, name, **changes)
    body["metadata"].update(namespace=namespace, uid=f"uid-of-{kind}")
    return msgspec.convert(body, BY_NAME[kind].object_type, strict=False)


def rendered(
    found: Any, *, controller: ControllerObject | None = None, site: ControlSite = SITE
) -> tuple[JsonObject, ...]:
    """All bodies of one object."""
    control = controller or given("Controller", namespace=found.metadata.namespace)
    match found:
        case ControllerObject():
            bodies = controller_bodies(found, FILES, site)
        case AccountingObject():
            bodies = accounting_bodies(found, "p#w", site)
        case RestApiObject():
            bodies = restapi_bodies(found, control, FILES, site, presented=PRESENTED)
        case LoginSetObject():
            bodies = (*login_set_bodies(found, control, site), host_keys_body(found, KEYS))
        case NodeSetObject():
            bodies = node_set_bodies(found)
        case _:
            raise AssertionError(found)
    return bodies


def one(bodies: tuple[JsonObject, ...], kind: str, name: str = "") -> Any:
    """The only body of a kind, or the one of a name."""
    (body,) = [body for body in bodies if body["kind"] == kind and name in ("", name_of(body))]
    return body


def name_of(body: JsonObject) -> str:
    """The name of an object."""
    return str(body["metadata"]["name"])


def pod(bodies: tuple[JsonObject, ...]) -> Any:
    """The specification of the only pod template."""
    (body,) = [body for body in bodies if body["apiVersion"] == "apps/v1"]
    return body["spec"]["template"]


def named(elements: Any, name: str) -> Any:
    """The element of this name."""
    (found,) = [element for element in elements if element["name"] == name]
    return found
