"""All environment variables of the asset fetcher; no other module reads them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.assets.errors import AssetError
from sandbox.assets.kits import KITS, AssetName

ROOTS_CACHE = Path("/var/cache/slurm-bridge")
"""Root's cache: the sandbox drops to an unprivileged uid for Slurm, which could not read below a
0700 home.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianSettings:
    """Where Slurm's packages come from. All of it is optional on a Debian host."""

    mirror: str = ""
    """SLURM_DEB_MIRROR: the address above `dists/`; default: the mirrors in the host's apt sources."""
    suite: str = "forky"
    """SLURM_DEB_SUITE: the codename of a suite that has Slurm >= 25.05."""
    pin: str = ""
    """SLURM_DEB_PIN: a version prefix Slurm must have, as in `26.05`."""
    keyring: Path | None = None
    """SLURM_DEB_KEYRING: public keys of the archive; default: the host's, else the mirror's own (the keys are pinned)."""
    ignore_expiry: bool = False
    """SLURM_DEB_IGNORE_EXPIRY=1: accept an index past its Valid-Until, from a mirror that lags behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The environment's settings for assets."""

    explicit: Mapping[AssetName, str]
    """SANDBOX_KUBE, SANDBOX_SLURM …: folders with the programs."""
    cache: Path
    """SANDBOX_CACHE; default: /var/cache/slurm-bridge as root, else ${XDG_CACHE_HOME:-~/.cache}/slurm-bridge."""
    offline: bool = False
    """SANDBOX_OFFLINE=1: never try to fetch."""
    use_path: bool = False
    """SANDBOX_USE_PATH=1: prefer programs on PATH to the cache."""
    path: str = ""
    """PATH."""
    gopath: Path | None = None
    """SANDBOX_GOPATH: a module cache to use and keep; default: one next to the asset, deleted after
    the build.
    """
    gocache: Path | None = None
    """SANDBOX_GOCACHE: a build cache to use and keep, likewise."""
    keep_gocache: bool = False
    """SANDBOX_KEEP_GOCACHE=1: keep the default ones too."""
    slurm_images: Path | None = None
    """SLURM_IMAGES: a folder that `make slurm-images` filled; default: built once, in the cache."""
    debian: DebianSettings = DebianSettings()


def read(environ: Mapping[str, str], *, uid: int) -> Settings:
    """Read the settings for this environment and user.

    Raises:
        AssetError: a switch is neither on nor off, or there is no home to keep a cache in.
    """
    return Settings(
        explicit={name: environ.get(kit.variable, "") for name, kit in KITS.items()},
        cache=_cache(environ, uid),
        offline=_switch(environ, "SANDBOX_OFFLINE"),
        use_path=_switch(environ, "SANDBOX_USE_PATH"),
        path=environ.get("PATH", ""),
        gopath=_path(environ, "SANDBOX_GOPATH"),
        gocache=_path(environ, "SANDBOX_GOCACHE"),
        keep_gocache=_switch(environ, "SANDBOX_KEEP_GOCACHE"),
        slurm_images=_path(environ, "SLURM_IMAGES"),
        debian=DebianSettings(
            mirror=environ.get("SLURM_DEB_MIRROR", "").rstrip("/"),
            suite=environ.get("SLURM_DEB_SUITE", "") or "forky",
            pin=environ.get("SLURM_DEB_PIN", ""),
            keyring=_path(environ, "SLURM_DEB_KEYRING"),
            ignore_expiry=_switch(environ, "SLURM_DEB_IGNORE_EXPIRY"),
        ),
    )


def _cache(environ: Mapping[str, str], uid: int) -> Path:
    named = _path(environ, "SANDBOX_CACHE")
    if named is not None:
        return named
    if uid == 0:
        return ROOTS_CACHE
    base = environ.get("XDG_CACHE_HOME", "")
    if base.startswith("/"):  # the XDG specification: relative paths are ignored
        return Path(base) / "slurm-bridge"
    home = environ.get("HOME", "")
    if not home.startswith("/"):
        raise AssetError("HOME is not set, so there is no place for a cache: set SANDBOX_CACHE")
    return Path(home) / ".cache" / "slurm-bridge"


def _path(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name, "")
    return Path(value).expanduser().absolute() if value else None


def _switch(environ: Mapping[str, str], name: str) -> bool:
    match environ.get(name, "").lower():
        case "1" | "true" | "yes":
            return True
        case "" | "0" | "false" | "no":
            return False
        case value:
            raise AssetError(f"{name}={value}: expected 1 or 0")
