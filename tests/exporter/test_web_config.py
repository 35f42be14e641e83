"""The web configuration: what is understood, what is refused and in which words, and what is read again."""

import asyncio
import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slurmexporter.door import passwords, web_config
from slurmexporter.door.admission import refusal
from slurmexporter.door.web_config import UnusableWebConfig, parse
from slurmexporter.door.web_file import WebFile
from tests.make.certificates import Authority

FILE = Path("/etc/web/web.yml")
SAMPLE = b"""
tls_server_config:
  cert_file: server.crt
  key_file: /elsewhere/server.key
basic_auth_users:
  alice: $2y$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze
"""
HASHED = "$2y$04$OcLLxTcFqPLrHj8nBUXWbu1RkNLMoN97K3DsNgawREZeKC.LHBfEG"
TLS = {"cert_file": "a.crt", "key_file": "a.key"}
TOKEN = "t" * 40
WITHOUT_TLS = b"bearer_token_file: token\n"


def test_a_file_of_the_toolkit_is_understood() -> None:
    config = parse(SAMPLE, FILE)
    assert config.tls
    assert Path("/etc/web/server.crt") == config.tls.cert.file
    assert Path("/elsewhere/server.key") == config.tls.key.file
    assert (ssl.CERT_NONE, ssl.TLSVersion.TLSv1_2) == (config.tls.verify, config.tls.lowest)
    assert {"alice"} == config.users.keys()


def test_everything_that_is_supported_is_understood() -> None:
    config = parse(
        yaml.safe_dump(
            {
                "tls_server_config": {
                    "cert": "PEM",
                    "key": "PEM",
                    "client_ca_file": "ca.crt",
                    "client_auth_type": "RequireAndVerifyClientCert",
                    "client_allowed_sans": ["prometheus"],
                    "min_version": "TLS12",
                    "max_version": "TLS12",
                    "cipher_suites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
                    "prefer_server_cipher_suites": False,
                },
                "http_server_config": {
                    "http2": False,
                    "headers": {"X-Frame-Options": "deny", "X-XSS-Protection": ""},
                },
                "bearer_token_file": "token",
            }
        ).encode(),
        FILE,
    )
    assert config.tls
    assert (ssl.CERT_REQUIRED, frozenset({"prometheus"}), "ECDHE-RSA-AES128-GCM-SHA256") == (
        config.tls.verify,
        config.tls.allowed_names,
        config.tls.ciphers,
    )
    assert {"X-Frame-Options": "deny"} == config.headers
    assert (Path("/etc/web/token"), True) == (config.token_file, config.asks_for_credentials)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (None, "demands nothing"),
        ({"tls_server_config": None}, "`tls_server_config`"),
        ({"basic_auth_users": None}, "`basic_auth_users`"),
        ({"basic_auth_users": {}}, "basic_auth_users: has no user"),
        ({"basic_auth_users": {"a": "secret"}}, "basic_auth_users.a: expected a bcrypt hash"),
        ({"basic_auth_users": {"a": HASHED.replace("04", "17")}}, "cost from 4 to 16, got 17"),
        ({"basic_auth_users": {"a:b": HASHED}}, "has no colon"),
        ({"tls_server_config": {}}, "tls_server_config.cert_file: is missing"),
        ({"tls_server_config": {"cert_file": "a"}}, "tls_server_config.key_file: is missing"),
        ({"tls_server_config": {**TLS, "cert": "PEM"}}, "tls_server_config.cert: is given"),
        ({"tls_server_config": {**TLS, "min_version": "TLS10"}}, "min_version: expected TLS12"),
        (
            {"tls_server_config": {**TLS, "min_version": "TLS13", "max_version": "TLS12"}},
            "max_version: is below",
        ),
        ({"tls_server_config": {**TLS, "cipher_suites": ["RC4"]}}, "cipher_suites: 'RC4'"),
        (
            {"tls_server_config": {**TLS, "cipher_suites": ["TLS_AES_128_GCM_SHA256"]}},
            "none for TLS 1.2",
        ),
        ({"tls_server_config": {**TLS, "curve_preferences": ["X25519"]}}, "curve_preferences: not"),
        ({"tls_server_config": {**TLS, "client_ca_file": "ca"}}, "client_auth_type: is missing"),
        (
            {"tls_server_config": {**TLS, "client_auth_type": "RequireAndVerifyClientCert"}},
            "client_ca_file: is missing",
        ),
        (
            {"tls_server_config": {**TLS, "client_auth_type": "RequireAnyClientCert"}},
            "client_auth_type: 'RequireAnyClientCert' is not supported",
        ),
        (
            {"tls_server_config": {**TLS, "client_allowed_sans": ["a"]}},
            "client_allowed_sans: needs client_auth_type",
        ),
        ({"tls_server_config": {**TLS, "certfile": "a"}}, "unknown field `certfile`"),
        ({"http_server_config": {"http2": True}}, "http_server_config.http2: HTTP/2 is not"),
        ({"http_server_config": {"headers": {"Server": "x"}}}, "headers: 'Server' is not"),
        (
            {"http_server_config": {"headers": {"X-Frame-Options": "maybe"}}},
            "X-Frame-Options: expected deny or sameorigin",
        ),
        (
            {"http_server_config": {"headers": {"X-XSS-Protection": "a\r\nb: c"}}},
            "X-XSS-Protection: expected one line",
        ),
        ({"rate_limit": {"interval": "1s", "burst": 20}}, "rate_limit: not supported"),
        ({"bearer_token_file": ""}, "bearer_token_file: expected the name"),
        ({"tls_config": TLS}, "unknown field `tls_config`"),
        ([TLS], "Expected `object`"),
        ("tls_server_config", "Expected `object`"),
    ],
)
def test_what_is_not_supported_is_refused_by_its_name(document: object, said: str) -> None:
    with pytest.raises(UnusableWebConfig) as refused:
        parse(yaml.safe_dump(document).encode() if document is not None else b"# soon\n", FILE)
    assert said in str(refused.value)
    assert str(FILE) in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: &a [*a]", "unknown field"),
        (b"basic_auth_users:\n  a: x\n  a: y\n", "'a' is written twice"),
        (b"basic_auth_users:\n  no: x\n", "put it into quotes"),
        (b"tls_server_config: {cert_file: a", "expected"),
        (b"!!python/object/apply:os.getcwd []", "could not determine a constructor"),
        (b"[" * 65, "more than 64 opening brackets"),
        (b"- " * 5000, "RecursionError|recursion"),
        (b"\xff\xfe\x00", "codec|null|unacceptable|special"),
        (b"x" * (web_config.LONGEST_BYTES + 1), "longer than"),
    ],
)
def test_what_is_no_such_document_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(UnusableWebConfig, match=said):
        parse(content, FILE)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_whatever_is_in_the_file_it_is_understood_or_refused(content: bytes) -> None:
    try:
        config = parse(content, FILE)
    except UnusableWebConfig:
        return
    assert content.strip() == b"{}" or config.asks_for_credentials or config.tls or config.headers


@given(st.integers(0, len(SAMPLE)))
def test_a_half_written_file_never_asks_for_less_than_nothing(length: int) -> None:
    """What was cut off is missed only if the rest is complete in itself; it counts once it has not changed for a look."""
    try:
        config = parse(SAMPLE[:length], FILE)
    except UnusableWebConfig:
        return
    assert config.tls


class Files:
    """A web configuration on disk, with all that it names."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self.folder = folder
        self.file = folder / "web.yml"
        self.authority.issue("old").write(folder, "server")
        (folder / "ca.crt").write_bytes(self.authority.certificate)
        (folder / "token").write_text(f"{TOKEN}\n")
        self.write()

    def write(self, **sections: object) -> None:
        tls = {
            "cert_file": "server.crt",
            "key_file": "server.key",
            "client_ca_file": "ca.crt",
            "client_auth_type": "VerifyClientCertIfGiven",
        }
        document = {"tls_server_config": tls, "bearer_token_file": "token", **sections}
        self.file.write_text(yaml.safe_dump(document))

    def damage(self, name: str, content: bytes | None) -> None:
        file = self.folder / name
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def look_twice(web: WebFile) -> None:
    web.look()
    web.look()


async def is_admitted(web: WebFile, authorization: str) -> bool:
    refused = await refusal(
        web.rules, path="/metrics", authorization=authorization, certificate=None
    )
    return refused is None


async def test_a_new_token_is_taken_once_it_stays(files: Files) -> None:
    web = WebFile(str(files.file))
    before = web.rules
    (files.folder / "token").write_text(f"{'n' * 40}\n{TOKEN}\n")
    web.look()
    assert web.rules is before
    assert not await is_admitted(web, f"Bearer {'n' * 40}")
    web.look()
    assert await is_admitted(web, f"Bearer {'n' * 40}")
    assert await is_admitted(web, f"Bearer {TOKEN}")
    assert not await is_admitted(web, f"Bearer {TOKEN[:-1]}")


def test_a_new_certificate_and_a_new_ca_are_taken(files: Files) -> None:
    web = WebFile(str(files.file))
    before = web.rules.context
    other = Authority("other")
    other.issue("new").write(files.folder, "server")
    (files.folder / "ca.crt").write_bytes(other.certificate)
    look_twice(web)
    after = web.rules.context
    assert before
    assert after
    assert before.get_ca_certs() != after.get_ca_certs()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("web.yml", b"", id="an empty file"),
        pytest.param("web.yml", b"tls_server_config:\n", id="half a file"),
        pytest.param("web.yml", WITHOUT_TLS, id="without its TLS"),
        pytest.param("web.yml", b"unknown: key\n", id="an unknown key"),
        pytest.param("web.yml", None, id="no file"),
        pytest.param("server.crt", b"", id="an empty certificate"),
        pytest.param("server.key", b"-----BEGIN PRIVATE KEY-----\nMIG", id="half a key"),
        pytest.param("server.crt", None, id="no certificate"),
        pytest.param("ca.crt", b"", id="an empty CA"),
        pytest.param("token", b"", id="no token"),
        pytest.param("token", b"short\n", id="a token that can be guessed"),
        pytest.param("token", TOKEN.encode() + b"\0" + TOKEN.encode(), id="two tokens and a NUL"),
        pytest.param("token", b"\x80" * 40, id="random bytes"),
        pytest.param("token", b"x" * 5000, id="no token file"),
    ],
)
async def test_a_version_that_cannot_be_used_keeps_the_last_good_one_and_is_told(
    files: Files, name: str, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    web = WebFile(str(files.file))
    before, good = web.rules, (files.folder / name).read_bytes()
    files.damage(name, content)
    for _ in range(4):
        web.look()
    assert web.rules is before
    assert str(files.file) in web.fault
    assert [f"{web.fault}; the last good version stays in use"] == caplog.messages
    (files.folder / name).write_bytes(good)
    look_twice(web)
    assert "" == web.fault
    assert await is_admitted(web, f"Bearer {TOKEN}")
    files.damage(name, content)
    if content != WITHOUT_TLS:
        with pytest.raises(UnusableWebConfig):
            WebFile(str(files.file))


async def test_a_file_that_demands_less_is_not_believed_while_it_changes(files: Files) -> None:
    """Whoever writes a file may truncate it first, and the half may be complete in itself."""
    web = WebFile(str(files.file))
    good = files.file.read_bytes()
    for half in (b"tls_server_config: {cert_file: server.crt, key_file: server.key}\n", good) * 3:
        files.file.write_bytes(half)
        web.look()
        assert not await is_admitted(web, "")


@pytest.mark.parametrize("kind", ["right", "wrong", "unknown user", "no password"])
async def test_passwords_are_checked(files: Files, kind: str) -> None:
    """The hash is of `secret`, as htpasswd makes it."""
    shown: dict[str, Any] = {
        "right": "Basic YWxpY2U6c2VjcmV0",
        "wrong": "Basic YWxpY2U6d3Jvbmc=",
        "unknown user": "Basic Ym9iOnNlY3JldA==",
        "no password": "Basic !",
    }
    files.write(basic_auth_users={"alice": HASHED})
    web = WebFile(str(files.file))
    for _ in range(2):
        assert (kind == "right") == await is_admitted(web, shown[kind])
    assert await is_admitted(web, f"Bearer {TOKEN}"), "either will do"


async def test_of_a_flood_of_passwords_only_some_wait_and_the_right_one_does_not(
    files: Files,
) -> None:
    files.write(basic_auth_users={"alice": HASHED})
    rules = WebFile(str(files.file)).rules
    right = "Basic YWxpY2U6c2VjcmV0"

    async def status(authorization: str) -> int:
        refused = await refusal(
            rules, path="/metrics", authorization=authorization, certificate=None
        )
        return refused.status if refused else 200

    assert 200 == await status(right)
    guesses = [f"Basic {base64.b64encode(b'alice:%d' % guess).decode()}" for guess in range(50)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(status(guess)) for guess in guesses]
        await asyncio.sleep(0)
        assert 200 == await status(right)
        assert not all(task.done() for task in tasks)
    statuses = [task.result() for task in tasks]
    assert {401, 503} == set(statuses)
    assert passwords.MOST_WAITING == statuses.count(401)
