"""Objects and ConfigMaps from which configurations are made, for tests."""

from collections.abc import Mapping
from typing import Any

import msgspec

from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.configuration.rendering import render
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.nodeset import NodeSetObject
from tests.slurmoperator.examples import manifest


def controller(**spec: Any) -> ControllerObject:
    plain: dict[str, Any] = {"extraConf": ..., "prologScriptRefs": ..., "accountingRef": ...}
    return msgspec.convert(manifest("Controller", **{**plain, **spec}), type=ControllerObject)


def accounting(**spec: Any) -> AccountingObject:
    return msgspec.convert(manifest("Accounting", **spec), type=AccountingObject)


def node_set(name: str = "cpu", /, *, hostname: str = "", **spec: Any) -> NodeSetObject:
    plain: dict[str, Any] = {"extraConf": ..., "partition": ...}
    template = {"spec": {"hostname": hostname}} if hostname else ...
    made = manifest("NodeSet", name, **{**plain, "template": template, **spec})
    return msgspec.convert(made, type=NodeSetObject)


def inputs(
    *node_sets: NodeSetObject,
    database: AccountingObject | None = None,
    config_maps: Mapping[str, Mapping[str, str]] | None = None,
    **spec: Any,
) -> ConfigurationInputs:
    if database is not None:
        spec["accountingRef"] = {"name": database.metadata.name}
    return ConfigurationInputs(
        controller=controller(**spec),
        accounting=database,
        node_sets=node_sets,
        config_maps=config_maps or {},
    )


def files(given: ConfigurationInputs) -> Mapping[str, str]:
    return render(given).files
