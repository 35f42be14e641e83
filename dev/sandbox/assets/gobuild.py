"""Run `go build`, reporting progress every few seconds as go itself prints nothing."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.assets import cache, golang, kits
from sandbox.assets.cache import Site
from sandbox.assets.errors import FetchError, Unusable
from sandbox.assets.golang import Go
from sandbox.assets.kits import KITS, AssetName
from sandbox.assets.progress import Teller
from sandbox.assets.settings import Settings

TICK_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """A Go toolchain and its caches."""

    go: Go
    gopath: Path
    gocache: Path
    site: Site
    environment: Mapping[str, str]

    @property
    def modules(self) -> Path:
        """The module cache: sources by `path@version`."""
        return self.gopath / "pkg" / "mod"

    def build(self, module: Path, packages: Sequence[str], flags: str) -> None:
        """Compile packages of the folder's module into the site's bin/.

        Raises:
            FetchError: with the first error message.
        """
        built = ["-trimpath", "-ldflags", flags, "-o", f"{self.site.tree}/bin/"]
        self._go(module, ["build", *built, *packages])

    def build_tests(self, module: Path, package: str, flags: str, program: str) -> None:
        """Compile the tests of a package of the folder's module into a program in the site's bin/.

        Raises:
            FetchError: with the first error message.
        """
        built = [
            "-trimpath",
            "-vet=off",
            "-ldflags",
            flags,
            "-o",
            f"{self.site.tree}/bin/{program}",
        ]
        self._go(module, ["test", "-c", *built, package])

    def download(self, module: Path, wanted: Sequence[str]) -> None:
        """Download modules locked by the folder's module as a whole, for files that are not Go.

        Raises:
            FetchError: with the first error message; a wrong checksum is one.
        """
        self._go(module, ["mod", "download", *wanted])

    def finish(
        self, name: AssetName, contents: Mapping[str, str], settings: Settings
    ) -> cache.RecipeResult:
        """Check that the built programs run, and remove the caches unless the settings keep them.

        Raises:
            FetchError: a program is missing or does not run.
        """
        try:
            version = kits.check(KITS[name], self.site.tree / "bin")
        except Unusable as error:
            raise FetchError(str(error)) from error
        if not settings.keep_gocache:
            shutil.rmtree(self.site.lasting)
        return cache.RecipeResult(
            version=version, source=f"built with {self.go.origin}", contents=contents
        )

    def _go(self, module: Path, arguments: Sequence[str]) -> None:
        command = [str(self.go.program), *arguments]
        if shutil.which("setpriv"):  # a compiler must not outlive a killed fetch by minutes
            command = ["setpriv", "--pdeathsig", "TERM", *command]
        log = self.site.lasting / "build.log"
        with (
            log.open("w") as output,
            subprocess.Popen(
                command,
                cwd=module,
                env=self.environment,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            ) as build,
        ):
            try:
                code = _wait(build, self.site.tell, (self.gopath, self.gocache))
            except BaseException:
                build.terminate()
                raise
        if code != 0:
            cause = _cause(log.read_text(errors="replace"))
            raise FetchError(f"go {arguments[0]}: exit code {code}: {cause}; full log: {log}")


def workshop(site: Site, settings: Settings) -> Workshop:
    """Choose a Go and its caches.

    Raises:
        FetchError: no suitable Go was found.
    """
    gopath = settings.gopath or site.lasting / "go"
    gocache = settings.gocache or site.lasting / "gocache"
    site.lasting.mkdir(exist_ok=True)
    go = golang.choose(settings.path, site.scratch, site.tell)
    folders = {"GOPATH": gopath, "GOCACHE": gocache, "GOTMPDIR": site.scratch}
    environment = golang.environment(os.environ, golang.network(go), folders)
    return Workshop(go=go, gopath=gopath, gocache=gocache, site=site, environment=environment)


def _wait(build: subprocess.Popen[bytes], tell: Teller, caches: tuple[Path, ...]) -> int:
    while True:
        try:
            return build.wait(TICK_S)
        except subprocess.TimeoutExpired:
            mib = sum(map(cache.size, caches)) >> 20
            tell(f"compiling, caches {mib} MiB")


def _cause(log: str) -> str:
    """Return the first error line.

    "go: downloading …" is not one, a compiler killed for lack of memory is.
    """
    lines = [line for line in log.splitlines() if line and not line.startswith("go: downloading")]
    killed = [line for line in lines if "signal: killed" in line]
    if killed:
        return f"{killed[0]} (out of memory?)"
    return next(iter(lines), "no message")
