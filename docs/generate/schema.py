"""Write the `config` part of the chart's values.schema.json from the settings, so that both refuse the same things.

Run it after a change of the settings: `python -m docs.generate.schema`.
"""

import json
from pathlib import Path
from typing import Any

from bridge.settings import removed
from bridge.settings.schema import Settings

SCHEMA_FILE = Path(__file__).parents[2] / "deploy/chart/values.schema.json"

CHART_OWNED = {
    "kubernetes": ("kubeconfig", "namespace"),
    "slurm": ("token_file", "ca_file", "cert_file", "key_file"),
    "server": ("listen", "cert_file", "key_file"),
    "extender": ("client_ca_file",),
    "escrow": ("listen", "token_file"),
    "health": ("listen",),
}
"""Settings that the chart sets itself, or leaves at the default that its Deployments and Services rely on."""

NEVER_IN_VALUES = {
    *(("agent", name) for name in ("cgroup_root", "system_root", "node")),
    *(("certificates", name) for name in ("release", "hosts")),
    *(("escrow", name) for name in ("cert_file", "key_file")),
    ("controllers", "self_test_namespace"),
}
"""Settings of old that the chart set itself."""


def build() -> dict[str, Any]:
    """Return the JSON schema of `config`."""
    schema = Settings.model_json_schema()
    properties = {
        section: _plain(field, schema["$defs"]) for section, field in schema["properties"].items()
    }
    for section, names in CHART_OWNED.items():
        for name in names:
            del properties[section]["properties"][name]
        if not properties[section]["properties"]:
            del properties[section]
    for section, name in sorted(removed.REMOVED.keys() - NEVER_IN_VALUES):
        empty = {"additionalProperties": False, "properties": {}, "type": "object"}
        old = {"description": removed.description((section, name))}
        properties.setdefault(section, empty)["properties"][name] = old
    match = properties["policy"]["properties"]["rules"]["items"]["properties"]["match"]
    match["properties"]["service_accounts"] = {
        "description": "No longer a setting: name them in users, as system:serviceaccount:NAMESPACE:NAME."
    }
    return {
        "$comment": "Made from bridge/settings/schema.py by docs/generate/schema.py.",
        "type": "object",
        "additionalProperties": False,
        "required": ["scheduler_name", "controllers"],
        "properties": properties,
    }


def _plain(node: Any, definitions: dict[str, Any]) -> Any:
    """Without titles, defaults and class docstrings, and with definitions in their place."""
    if isinstance(node, list):
        return [_plain(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if reference := node.get("$ref") or node.get("allOf", [{}])[0].get("$ref"):
        return _plain(definitions[reference.rpartition("/")[2]], definitions)
    dropped = ("title", "default") + (("description",) if "properties" in node else ())
    return {
        key: {name: _plain(field, definitions) for name, field in value.items()}
        if key == "properties"
        else _plain(value, definitions)
        for key, value in node.items()
        if key not in dropped
    }


if __name__ == "__main__":
    values_schema = json.loads(SCHEMA_FILE.read_text())
    values_schema["properties"]["config"] = build()
    SCHEMA_FILE.write_text(json.dumps(values_schema, indent=2) + "\n")
