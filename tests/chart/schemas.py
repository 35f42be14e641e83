"""JSON schemas for kubeconform: those of a running API server and of CRDs, made strict, so that no misspelt field passes.

The API server tells its own types as OpenAPI v3, the very ones it decodes with:
<https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3>.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sandbox.api import Api

LOCATION = "{{.Group}}-{{.ResourceAPIVersion}}-{{.ResourceKind}}.json"
"""Where kubeconform looks, in the folder; the core group is called by its version."""

Schema = dict[str, Any]
_DEFINITIONS = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_OPEN = ("additionalProperties", "x-kubernetes-preserve-unknown-fields")


def write(api: Api, crds: Path, folder: Path) -> int:
    """Write one file for each kind; how many."""
    served = api.get("/openapi/v3")["paths"]
    documents = {path: api.get(where["serverRelativeURL"]) for path, where in served.items()}
    kinds = dict(pair for document in documents.values() for pair in _kinds(document))
    core = _schemas(documents["api/v1"])
    for file in sorted(crds.glob("*.yaml")):
        kinds |= dict(_custom(yaml.safe_load(file.read_text()), core))
    for name, schema in kinds.items():
        (folder / name).write_text(json.dumps(schema))
    return len(kinds)


def _schemas(document: Schema) -> Schema:
    schemas = document.get("components", {}).get("schemas", {})
    return {name: strict(schema) for name, schema in schemas.items()}


def _kinds(document: Schema) -> Iterator[tuple[str, Schema]]:
    schemas = _schemas(document)
    for schema in schemas.values():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            whole = {**schema, "components": {"schemas": schemas}}
            yield _file(kind["group"], kind["version"], kind["kind"]), whole


def _custom(crd: Schema, core: Schema) -> Iterator[tuple[str, Schema]]:
    spec = crd["spec"]
    for version in spec["versions"]:
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"$ref": f"{_DEFINITIONS}{_META}"}
        whole = {**schema, "components": {"schemas": core}}
        yield _file(spec["group"], version["name"], spec["names"]["kind"]), whole


def _file(group: str, version: str, kind: str) -> str:
    return f"{group or version}-{version}-{kind.lower()}.json"


def strict(schema: Any) -> Any:
    """The same, but what is not named is not allowed, unless the schema says that anything is."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items() if key != "properties"}
    if "properties" in schema:  # a map from names to schemas, not a schema: a name may be any word
        made["properties"] = {name: strict(one) for name, one in schema["properties"].items()}
        if not any(schema.get(key) for key in _OPEN):
            made["additionalProperties"] = False
    if schema.get("nullable") and isinstance(schema.get("type"), str):
        made["type"] = [schema["type"], "null"]
    return made
