"""Kubernetes, etcd and kwok, compiled from the Go modules that kube/go.mod and go.sum lock: no registry has the programs.

About 5 minutes on two cores, 2.3 GB of memory, 6 GB of disk; 258 MB stay.
"""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from sandbox.assets import cache, golang, kits
from sandbox.assets.errors import FetchError, Unusable
from sandbox.assets.golang import Go
from sandbox.assets.kits import KITS, AssetName
from sandbox.assets.progress import Teller
from sandbox.assets.settings import Settings

MODULE = Path(__file__).with_name("kube")
SOURCES = ("go.mod", "go.sum", "hyper/main.go")
PACKAGES = (
    "./hyper",
    "go.etcd.io/etcd/server/v3",
    "sigs.k8s.io/kwok/cmd/kwok",
    "k8s.io/kubernetes/cmd/kubectl",
)
PROGRAMS = {"server": "etcd"}
"""Programs that Go names after the last part of their package's path -> what the world calls them."""
HYPER = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Names hyper goes by."""
VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
"""Where the version is linked in; without it they call themselves v0.0.0-master."""

DISK_NEEDED = 6 << 30
"""Bytes from empty caches: 3.5 GB of caches, up to 2.5 GB of Go's work folder; measured peak 5.9 GB."""
DISK_NEEDED_WARM = 3 << 30
TICK_S = 10


def recipe(settings: Settings) -> cache.Recipe:
    """How to build it. The key leaves Go's version out: go.sum decides what the programs are, Go only how they run."""
    sources = [(MODULE / name).read_bytes() for name in SOURCES]
    return cache.Recipe(
        name=AssetName.KUBE,
        key=cache.key(*sources, *PACKAGES, linker_flags(modules()), platform.machine()),
        make=lambda site: _make(site, settings),
    )


def modules(go_mod: str = "") -> dict[str, str]:
    """The modules that kube/go.mod requires, with their versions."""
    text = go_mod or (MODULE / "go.mod").read_text()
    return dict(
        re.findall(r"^\s*(?:require )?(\S+\.\S+/\S+) (v\S+)(?: // indirect)?$", text, re.MULTILINE)
    )


def linker_flags(required: Mapping[str, str]) -> str:
    """Stripped, and told their version."""
    version = required["k8s.io/kubernetes"]
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    told = [f"-X {p}.{name}={value}" for p in VERSION_PACKAGES for name, value in values.items()]
    return " ".join(["-s -w", *told])


def _make(site: cache.Site, settings: Settings) -> cache.Made:
    gopath = settings.gopath or site.lasting / "go"
    gocache = settings.gocache or site.lasting / "gocache"
    site.lasting.mkdir(exist_ok=True)
    check_disk(
        site.lasting,
        free=shutil.disk_usage(site.lasting).free,
        present=cache.size(gopath) + cache.size(gocache),
    )
    go = golang.choose(settings.path, site.scratch, site.tell)
    site.tell(f"compiling Kubernetes with {go.origin}; from nothing this takes about 5 minutes")
    folders = {"GOPATH": gopath, "GOCACHE": gocache, "GOTMPDIR": site.scratch}
    environment = golang.environment(os.environ, golang.network(go), folders)
    _build(go, site, environment, (gopath, gocache))
    for built, name in PROGRAMS.items():
        (site.tree / "bin" / built).rename(site.tree / "bin" / name)
    for name in HYPER:
        (site.tree / "bin" / name).symlink_to("hyper")
    try:
        version = kits.check(KITS[AssetName.KUBE], site.tree / "bin")
    except Unusable as error:
        raise FetchError(str(error)) from error
    if not settings.keep_gocache:
        shutil.rmtree(site.lasting)
    return cache.Made(
        version=version, source=f"built with {go.origin}", contents={"go": go.version, **modules()}
    )


def check_disk(folder: Path, *, free: int, present: int) -> None:
    """Whether a build in `folder` will end, with `present` bytes of it in the caches already.

    Raises:
        FetchError: the disk is too small.
    """
    needed = max(DISK_NEEDED - present, DISK_NEEDED_WARM)
    if free < needed:
        raise FetchError(
            f"{folder} has {free / 2**30:.1f} GiB free, the build needs {needed / 2**30:.1f}:"
            " make room or set SANDBOX_CACHE to a folder on a larger disk"
        )


def _build(
    go: Go, site: cache.Site, environment: Mapping[str, str], caches: tuple[Path, ...]
) -> None:
    """Runs `go build`, which says nothing while it works: so we say every few seconds that it does."""
    flags = ["-trimpath", "-ldflags", linker_flags(modules())]
    command = [str(go.program), "build", *flags, "-o", f"{site.tree}/bin/", *PACKAGES]
    if shutil.which("setpriv"):  # a compiler must not go on for minutes after a killed fetch
        command = ["setpriv", "--pdeathsig", "TERM", *command]
    log = site.lasting / "build.log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            command,
            cwd=MODULE,
            env=environment,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        ) as build,
    ):
        try:
            code = _wait(build, site.tell, caches)
        except BaseException:
            build.terminate()
            raise
    if code != 0:
        raise FetchError(
            f"go build ended with {code}: {_cause(log.read_text(errors='replace'))}; all of it: {log}"
        )


def _wait(build: subprocess.Popen[bytes], tell: Teller, caches: tuple[Path, ...]) -> int:
    while True:
        try:
            return build.wait(TICK_S)
        except subprocess.TimeoutExpired:
            mib = sum(map(cache.size, caches)) >> 20
            tell(f"compiling, caches {mib} MiB")


def _cause(log: str) -> str:
    """The first line that is an error; "go: downloading …" is none, a compiler killed for want of memory is."""
    lines = [line for line in log.splitlines() if line and not line.startswith("go: downloading")]
    killed = [line for line in lines if "signal: killed" in line]
    if killed:
        return f"{killed[0]} (out of memory? it needs 2.3 GB)"
    return next(iter(lines), "no message")
