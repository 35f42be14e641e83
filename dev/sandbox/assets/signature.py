"""Check the signature of a Debian index: with gpgv if the host has it, else Sequoia from a locked wheel.

The keys are pinned, so the keyring itself needs no trust: it may come from the mirror whose index is
checked.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sandbox.assets import wheels
from sandbox.assets.errors import FetchError
from sandbox.assets.progress import Teller

ARCHIVE_KEYS = frozenset(
    {
        "B8B80B5B623EAB6AD8775C45B7C5D7D6350947F8",  # Debian Archive Automatic Signing Key (12/bookworm)
        "04B54C3CDCA79751B16BC6B5225629DF75B188BD",  # Debian Archive Automatic Signing Key (13/trixie)
    }
)
"""Fingerprints of primary keys. Both sign testing and unstable today; add Debian 14's key when it
exists.
"""

TIMEOUT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """Checks clear-signed texts against a keyring."""

    keyring: Path
    trusted: frozenset[str] = ARCHIVE_KEYS

    def text(self, signed: bytes, *, of: str, scratch: Path, tell: Teller) -> str:
        """Return the signed text alone; `of` names it in errors.

        Raises:
            FetchError: no good signature by a trusted key.
        """
        if not self.keyring.is_file():
            raise FetchError(f"no keyring at {self.keyring}")
        check = _gpgv if shutil.which("gpgv") else _sequoia
        text, signers = check(signed, self.keyring, scratch, tell)
        if not signers & self.trusted:
            by = ", ".join(sorted(signers)) or "no key in the keyring"
            raise FetchError(f"{of}: no good signature by a known archive key (signed by {by})")
        return text


def good_signers(status: str) -> frozenset[str]:
    """Return the primary keys with a good signature, from gpgv's status lines (GnuPG, doc/DETAILS).

    VALIDSIG alone is not enough: it also follows EXPKEYSIG and REVKEYSIG. Any bad signature
    invalidates all of them.
    """
    signers = set()
    good = False
    for line in status.splitlines():
        _, keyword, *words = [*line.split(), ""]
        if keyword == "BADSIG":
            return frozenset()
        if keyword in {"NEWSIG", "GOODSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG"}:
            good = keyword == "GOODSIG"
        elif keyword == "VALIDSIG" and good:
            signers.add([word for word in words if word][-1])
    return frozenset(signers)


def _gpgv(signed: bytes, keyring: Path, scratch: Path, tell: Teller) -> tuple[str, frozenset[str]]:
    del scratch, tell
    command = ["gpgv", "--status-fd=2", f"--keyring={keyring.absolute()}", "--output=-", "-"]
    done = subprocess.run(
        command, check=False, input=signed, capture_output=True, timeout=TIMEOUT_S
    )
    status = re.findall(r"^\[GNUPG:\] .*$", done.stderr.decode(errors="replace"), re.MULTILINE)
    return done.stdout.decode(errors="replace"), good_signers("\n".join(status))


def _sequoia(
    signed: bytes, keyring: Path, scratch: Path, tell: Teller
) -> tuple[str, frozenset[str]]:
    program = Path(__file__).with_name("sequoia.py")
    folder = wheels.unpack("pysequoia", scratch, tell)
    done = subprocess.run(
        [sys.executable, "-P", str(program), str(keyring)],
        check=False,
        input=signed,
        capture_output=True,
        timeout=TIMEOUT_S,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    lines = done.stderr.decode(errors="replace").split("\n")
    if done.returncode != 0:  # the end of its traceback has the reason
        tell(f"pysequoia: {' '.join(lines).strip()[-200:]}")
        return "", frozenset()
    return done.stdout.decode(errors="replace"), frozenset(lines)
