"""The configuration of this machine's pip, for the steps that install: as secrets, which no layer keeps."""

import ast
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

INSIDE = "/run/secrets/ca.crt"
"""Where a step sees the certificates."""
_KEPT = frozenset(
    {"cert", "default-timeout", "extra-index-url", "index-url", "proxy", "timeout", "trusted-host"}
)
_SECTIONS = ("global", "install", ":env:")
"""In ascending order of precedence, as in pip itself."""


def configured() -> str:
    """Return pip's configuration on this machine, from files and environment."""
    command = (sys.executable, "-m", "pip", "config", "list")
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def secrets(configuration: str, folder: Path) -> Mapping[str, Path]:
    """Write the secrets to `folder` and return them by the Dockerfile's names."""
    options = _settings(configuration)
    certificates = options.get("cert")
    if certificates is not None:
        options["cert"] = INSIDE
    conf = folder / "pip.conf"
    conf.touch(mode=0o600)
    lines = (f"{key} = {_indented(value)}\n" for key, value in sorted(options.items()))
    conf.write_text("".join(("[global]\n", *lines)))
    return {"pip.conf": conf} | ({"ca.crt": Path(certificates)} if certificates else {})


def _settings(configuration: str) -> dict[str, str]:
    read: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in configuration.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.partition(".")
        if section in read and key in _KEPT:
            read[section][key] = str(ast.literal_eval(value))
    return {key: value for section in _SECTIONS for key, value in read[section].items()}


def _indented(value: str) -> str:
    return "\n    ".join(value.splitlines())  # several indexes are several lines
