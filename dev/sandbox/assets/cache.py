"""The cache of assets: one folder each, either complete or absent, even with concurrent fetches.

Invariant: `<asset>-<key>` appears by rename, with its manifest inside, so a visible asset is complete.
Work happens in `<asset>-<key>.tmp.*` beside it, under an flock on `<asset>-<key>.lock`. The lock dies
with its holder; the next holder may remove leftovers of earlier ones. Lock files stay: removing one
would let two holders in.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

import msgspec

from sandbox.assets.kits import AssetName
from sandbox.assets.progress import Teller

QUIET_WAIT_S = 1.0
"""How long to wait for another fetch before reporting the wait."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`manifest.json`: what a complete asset contains and what it was made from."""

    path: str
    """The path it was made for. Slurm's programs name their libraries by absolute path, so a moved
    tree does not run.
    """
    version: str
    source: str
    """One line, as in "wheel NAME 2.0.1"."""
    made_at: datetime
    programs: dict[str, int]
    """Each program in bin/ and its size in bytes."""
    contents: dict[str, str]
    """Package or module -> version, with its SHA256 if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeResult:
    """A recipe's report about the tree it made."""

    version: str
    source: str
    contents: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The folders a recipe works in."""

    tree: Path
    """The folder to fill. It becomes `final`."""
    final: Path
    """Where the tree will be, for files that must name their own path."""
    scratch: Path
    """For anything temporary; removed afterwards."""
    lasting: Path
    """For files that should survive a killed run, such as a compiler's cache. The recipe removes it."""
    tell: Teller


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How to make one asset."""

    name: AssetName
    key: str
    """Changes with everything that determines the content."""
    make: Callable[[Site], RecipeResult]
    """Fills `Site.tree`: programs in bin/, their files in root/ if they need any. Raises FetchError
    or OSError.
    """


def key(*parts: str | bytes) -> str:
    """Return 12 hex digits: a digest of all the parts, in order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()[:12]


def location(cache: Path, recipe: Recipe) -> Path:
    """Return where the recipe's asset is, or would be."""
    return cache / f"{recipe.name}-{recipe.key}"


def find(path: Path) -> Manifest | None:
    """Return the manifest of a complete asset made for this path.

    Return None if there is none, or programs are missing.
    """
    try:
        manifest = msgspec.json.decode((path / "manifest.json").read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError):
        return None
    return manifest if manifest.path == str(path) and _intact(path, manifest) else None


def others(cache: Path, recipe: Recipe) -> list[Path]:
    """Return complete assets of the same name under other keys, newest first."""
    manifests = {path: find(path) for path in cache.glob(f"{recipe.name}-*") if path.suffix == ""}
    made_at = {
        path: manifest.made_at for path, manifest in manifests.items() if manifest is not None
    }
    made_at.pop(location(cache, recipe), None)
    return sorted(made_at, key=lambda path: made_at[path], reverse=True)


def create(cache: Path) -> None:
    """Create the cache folder, accessible to others whatever the umask.

    Slurm runs from it under another uid.
    """
    if not cache.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        cache.chmod(0o755)


def fill(cache: Path, recipe: Recipe, *, now: Callable[[], datetime], tell: Teller) -> Manifest:
    """Make the asset unless it exists, even if another process completes it at the same time.

    Raises:
        FetchError, OSError: from the recipe, or because the cache cannot be written; nothing is left
            behind.
    """
    final = location(cache, recipe)
    create(cache)
    with locked(final.with_name(f"{final.name}.lock"), tell):
        manifest = find(final)
        if manifest is None:
            manifest = _make(final, recipe, now=now, tell=tell)
        return manifest


def remove(path: Path, tell: Teller) -> int:
    """Remove an asset and all remains of earlier runs; return the bytes freed."""
    with locked(path.with_name(f"{path.name}.lock"), tell):
        freed = 0
        for folder in (path, *path.parent.glob(f"{path.name}.*")):
            if folder.is_dir():
                freed += size(folder)
                shutil.rmtree(folder)
        return freed


def size(folder: Path) -> int:
    """Return the bytes of all files below; files that vanish during the count are left out."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118  # 100 000 files
    return total


def closed_ancestor(path: Path) -> Path | None:
    """Return the first folder on the way to `path`, itself included, that other users may not enter."""
    for folder in (*reversed(path.parents), path):
        if folder.exists() and not folder.stat().st_mode & 0o001:
            return folder
    return None


@contextlib.contextmanager
def locked(path: Path, tell: Teller) -> Iterator[None]:
    """Hold the lock; if it is not free within a second, report its holder."""
    with path.open("a+") as file:
        _lock(file, tell)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _lock(file: TextIO, tell: Teller) -> None:
    deadline = time.monotonic() + QUIET_WAIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(QUIET_WAIT_S / 20)
    file.seek(0)
    tell(f"waiting for another fetch (pid {file.read() or 'unknown'})")
    fcntl.flock(file, fcntl.LOCK_EX)


def _make(final: Path, recipe: Recipe, *, now: Callable[[], datetime], tell: Teller) -> Manifest:
    for leftover in final.parent.glob(f"{final.name}.tmp.*"):
        shutil.rmtree(leftover)
    workshop = Path(tempfile.mkdtemp(prefix=f"{final.name}.tmp.", dir=final.parent))
    try:
        site = Site(
            tree=workshop / "tree",
            final=final,
            scratch=workshop / "scratch",
            lasting=final.with_name(f"{final.name}.lasting"),
            tell=tell,
        )
        site.tree.mkdir()
        site.scratch.mkdir()
        result = recipe.make(site)
        manifest = Manifest(
            path=str(final),
            version=result.version,
            source=result.source,
            made_at=now(),
            programs={p.name: p.stat().st_size for p in sorted((site.tree / "bin").iterdir())},
            contents=dict(sorted(result.contents.items())),
        )
        (site.tree / "manifest.json").write_bytes(
            msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        )
        _open_to_all(site.tree)
        shutil.rmtree(final, ignore_errors=True)  # incomplete, or made for another path
        site.tree.rename(final)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    return manifest


def _intact(path: Path, manifest: Manifest) -> bool:
    """Check whether the programs still have their sizes.

    Cache cleaners and crashed machines lose files.
    """
    try:
        return all(
            (path / "bin" / name).stat().st_size == size for name, size in manifest.programs.items()
        )
    except OSError:
        return False


def _open_to_all(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))
