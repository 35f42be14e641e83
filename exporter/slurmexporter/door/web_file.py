"""The web configuration in use: read again when its files change; a version that cannot be used is not served."""

import hashlib
import logging
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slurmexporter.door.passwords import NoBcrypt, Passwords
from slurmexporter.door.web_config import TlsRules, UnusableWebConfig, WebConfig, parse

POLL_S: Final = 1.0
"""Time between looks at the files. They must be the same at two looks before they count: who writes a file may
have truncated it first, and half of it may ask for less."""

SHORTEST_TOKEN: Final = 32
_LONGEST_TOKENS_BYTES: Final = 4096
_OPEN: Final = WebConfig(tls=None, headers={}, users={}, token_file=None)
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    config: WebConfig
    contents: dict[str, bytes]
    """By field: certificates, keys and tokens."""
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is demanded of connections and requests."""

    config: WebConfig
    context: ssl.SSLContext | None
    passwords: Passwords
    tokens: tuple[bytes, ...]


class WebFile:
    """The rules by the file; without one, everybody is served by HTTP."""

    def __init__(self, file: str) -> None:
        """Read the file.

        Raises:
            UnusableWebConfig: If it, or what it names, cannot be used.
        """
        self._file = Path(file) if file else None
        self.fault = ""
        """Why the newest version of the files is not in use; "" if it is."""
        files = self._read()
        self.rules = self._rules(files, None)
        self._seen = self._settling = files.digest

    def look(self) -> None:
        """Take the files' contents if they changed before the last look and not since."""
        try:
            files = self._read()
            settled, self._settling = self._settling == files.digest, files.digest
            if not settled or files.digest == self._seen:
                return
            self.rules = self._rules(files, self.rules)
        except UnusableWebConfig as error:
            if str(error) != self.fault:
                _LOG.error("%s; the last good version stays in use", error)
            self.fault = str(error)
            self._seen = b""
        else:
            self._seen, self.fault = files.digest, ""
            _LOG.info("%s: the new version is in use", self._file)

    def _read(self) -> _Files:
        if self._file is None:
            return _Files(config=_OPEN, contents={}, digest=b"")
        text = _content(self._file, str(self._file))
        config = parse(text, self._file)
        contents = {}
        if config.tls:
            for pem in (config.tls.cert, config.tls.key, config.tls.client_ca):
                if pem:
                    name = f"{self._file}: {pem.field}"
                    contents[pem.field] = (
                        _content(pem.file, name) if pem.file else pem.text.encode()
                    )
        if config.token_file:
            contents["bearer_token_file"] = _content(
                config.token_file, f"{self._file}: bearer_token_file"
            )
        parts = (text, *contents.values())
        digest = b"".join(hashlib.sha256(part).digest() for part in parts)
        return _Files(config=config, contents=contents, digest=digest)

    def _rules(self, files: _Files, before: Rules | None) -> Rules:
        config = files.config
        if before and (before.config.tls is None) != (config.tls is None):
            raise UnusableWebConfig(
                f"{self._file}: tls_server_config: TLS is switched on or off only by a restart"
            )
        try:
            is_same = before is not None and before.config.users == config.users
            passwords = before.passwords if before and is_same else Passwords(config.users)
        except NoBcrypt as error:
            raise UnusableWebConfig(f"{self._file}: basic_auth_users: {error}") from error
        return Rules(
            config=config,
            context=self._context(config.tls, files) if config.tls else None,
            passwords=passwords,
            tokens=self._tokens(files) if config.token_file else (),
        )

    def _tokens(self, files: _Files) -> tuple[bytes, ...]:
        content = files.contents["bearer_token_file"]
        tokens = tuple(line.strip() for line in content.split(b"\n") if line.strip())
        is_usable = all(
            len(token) >= SHORTEST_TOKEN and token.isascii() and token.decode().isprintable()
            for token in tokens
        )
        if not tokens or not is_usable or len(content) > _LONGEST_TOKENS_BYTES:
            raise UnusableWebConfig(
                f"{self._file}: bearer_token_file: {files.config.token_file}: expected tokens of at least "
                f"{SHORTEST_TOKEN} printable characters, one per line, as `openssl rand -hex 32` makes them"
            )
        return tokens

    def _context(self, tls: TlsRules, files: _Files) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        context.minimum_version, context.maximum_version = tls.lowest, tls.highest
        context.verify_mode = tls.verify
        if not tls.prefers_own_ciphers:
            context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
        if tls.verify is not ssl.CERT_NONE:
            # A resumed session would not be checked against a CA that has changed since.
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
        if tls.ciphers:
            context.set_ciphers(tls.ciphers)
        chain, key = files.contents[tls.cert.field], files.contents[tls.key.field]
        try:
            with _as_file(key + b"\n" + chain) as path:
                context.load_cert_chain(path, password=lambda: "")
        except (ssl.SSLError, ValueError) as error:
            raise UnusableWebConfig(
                f"{self._file}: {tls.cert.field} and {tls.key.field} are not a matching certificate chain "
                f"and key (PEM, not encrypted): {error}"
            ) from error
        if tls.client_ca:
            try:
                context.load_verify_locations(
                    cadata=files.contents[tls.client_ca.field].decode("ascii")
                )
            except (ssl.SSLError, ValueError) as error:
                raise UnusableWebConfig(
                    f"{self._file}: {tls.client_ca.field} has no CA certificate: {error}"
                ) from error
        return context


def _content(file: Path, name: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UnusableWebConfig(f"{name}: {file}: {error.strerror}") from error


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Yield the name of a file in memory: the ssl module requires files, and those on disk may change meanwhile."""
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
