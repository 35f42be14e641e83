import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from slurmruntime.process import tls
from slurmruntime.process.tls import ServerTls
from tests.make.certificates import NOT_AFTER, Authority
from tests.make.peers import Connection, serving, talk

NOW = datetime(2026, 6, 1, tzinfo=UTC)

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("hello")(scope, receive, send)


def client(
    authority: Authority,
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    own: tuple[str, str] | None = None,
) -> ssl.SSLContext:
    """A client that trusts one CA, speaks one version and may have a certificate of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority.certificate.decode())
    context.minimum_version = context.maximum_version = version
    if own:
        context.load_cert_chain(*own)
    return context


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


class TestReload:
    @pytest.mark.parametrize("version", VERSIONS)
    async def test_a_new_certificate_is_served_without_a_restart(
        self, authority: Authority, tmp_path: Path, version: ssl.TLSVersion
    ) -> None:
        files = authority.issue("old").write(tmp_path, "server")
        served = ServerTls(*files)
        trusting = client(authority, version)
        async with serving(hello, tls=served.context) as address:
            before = await talk(address, Connection.common_name, tls=trusting)
            authority.issue("new").write(tmp_path, "server")
            served.reload()
            after = await talk(address, Connection.common_name, tls=trusting)

        assert ("CN=old", "CN=new") == (before, after)

    async def test_a_connection_that_is_open_goes_on(
        self, authority: Authority, tmp_path: Path
    ) -> None:
        served = ServerTls(*authority.issue("old").write(tmp_path, "server"))

        def ask_before_and_after(peer: Connection) -> list[bytes]:
            first = peer.ask()
            Authority().issue("new").write(tmp_path, "server")
            served.reload()
            return [first.body, peer.ask().body]

        async with serving(hello, tls=served.context) as address:
            bodies = await talk(address, ask_before_and_after, tls=client(authority))

        assert [b"hello", b"hello"] == bodies

    async def test_a_secret_that_is_replaced_again_and_again_under_load_fails_no_request(
        self, authority: Authority, tmp_path: Path
    ) -> None:
        """Both files are written one after the other and not at once, so looks meet halves, too."""
        names = authority.issue("0").write(tmp_path, "server")
        served, trusting = ServerTls(*names), client(authority)
        cert_file, key_file = map(Path, names)
        answers: list[bytes] = []

        async def ask_on(address: tuple[str, int], is_over: asyncio.Event) -> None:
            while not is_over.is_set():
                answer = await talk(address, Connection.ask, tls=trusting)
                answers.append(answer.body)

        async with serving(hello, tls=served.context, within_s=60) as address:
            is_over = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                for _ in range(4):
                    group.create_task(ask_on(address, is_over))
                for number in range(30):
                    pair = authority.issue(str(number))
                    half = pair.certificate[: len(pair.certificate) // 2]
                    for file, content in (
                        (cert_file, b""),
                        (cert_file, half),
                        (cert_file, pair.certificate),
                        (key_file, pair.key),
                    ):
                        file.write_bytes(content)
                        served.reload()
                        await asyncio.sleep(0.01)
                is_over.set()
            last = await talk(address, Connection.common_name, tls=trusting)

        assert len(answers) > 20
        assert {b"hello"} == set(answers)
        assert "CN=29" == last

    async def test_the_files_are_looked_at_while_it_runs(
        self, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tls, "POLL_S", 0.01)
        served = ServerTls(*authority.issue("old").write(tmp_path, "server"))
        stop = asyncio.Event()
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(served.run(stop))
            async with serving(hello, tls=served.context) as address:
                authority.issue("new").write(tmp_path, "server")
                while "CN=new" != await talk(
                    address, Connection.common_name, tls=client(authority)
                ):
                    pass
            stop.set()

    @pytest.mark.parametrize(
        "spoil",
        [
            pytest.param(
                lambda cert, _key: cert.write_bytes(b"half a certif"), id="no certificate"
            ),
            pytest.param(lambda _cert, key: key.write_bytes(b""), id="no key"),
            pytest.param(lambda cert, _key: cert.unlink(), id="no file"),
            pytest.param(
                lambda cert, _key: cert.write_bytes(Authority().issue("other").certificate),
                id="another key's certificate",
            ),
        ],
    )
    async def test_the_old_pair_is_served_until_the_new_one_is_good(
        self, authority: Authority, tmp_path: Path, spoil: Callable[[Path, Path], None]
    ) -> None:
        files = authority.issue("old").write(tmp_path, "server")
        served = ServerTls(*files)
        trusting = client(authority)
        async with serving(hello, tls=served.context) as address:
            spoil(Path(files[0]), Path(files[1]))
            with structlog.testing.capture_logs() as logs:
                served.reload()
            spoilt = await talk(address, Connection.common_name, tls=trusting)
            authority.issue("new").write(tmp_path, "server")
            served.reload()
            good = await talk(address, Connection.common_name, tls=trusting)

        assert ("CN=old", "CN=new") == (spoilt, good)
        assert ["tls.reload_refused"] == [line["event"] for line in logs]

    def test_what_is_refused_is_said_once(self, authority: Authority, tmp_path: Path) -> None:
        files = authority.issue("old").write(tmp_path, "server")
        served = ServerTls(*files)
        Path(files[0]).write_bytes(b"")
        with structlog.testing.capture_logs() as logs:
            served.reload()
            served.reload()

        assert 1 == len(logs)

    def test_unchanged_files_say_nothing(self, authority: Authority, tmp_path: Path) -> None:
        pair = authority.issue("old")
        served = ServerTls(*pair.write(tmp_path, "server"))
        pair.write(tmp_path, "server")
        with structlog.testing.capture_logs() as logs:
            served.reload()

        assert [] == logs


class TestClientCertificates:
    @pytest.mark.parametrize("version", VERSIONS)
    async def test_only_clients_of_the_current_ca_get_in(
        self, authority: Authority, tmp_path: Path, version: ssl.TLSVersion
    ) -> None:
        ours, theirs = Authority("ours"), Authority("theirs")
        ca_file = tmp_path / "ca.crt"
        ca_file.write_bytes(ours.certificate)
        served = ServerTls(*authority.issue("server").write(tmp_path, "server"), str(ca_file))
        known = client(authority, version, ours.issue("a").write(tmp_path, "a"))
        stranger = client(authority, version, theirs.issue("b").write(tmp_path, "b"))
        nobody = client(authority, version)

        async def admitted(address: tuple[str, int]) -> list[bool]:
            return [await is_answered(address, context) for context in (known, stranger, nobody)]

        async with serving(hello, tls=served.context) as address:
            before = await admitted(address)
            ca_file.write_bytes(theirs.certificate)
            served.reload()
            after = await admitted(address)

        assert ([True, False, False], [False, True, False]) == (before, after)


async def is_answered(address: tuple[str, int], context: ssl.SSLContext) -> bool:
    try:
        return 200 == (await talk(address, Connection.ask, tls=context)).status
    except (ssl.SSLError, ConnectionError):
        return False


class TestStart:
    def test_nothing_older_than_tls_1_2_is_spoken(
        self, authority: Authority, tmp_path: Path
    ) -> None:
        served = ServerTls(*authority.issue("server").write(tmp_path, "server"))

        assert ssl.TLSVersion.TLSv1_2 == served.context.minimum_version

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(tls.Unusable, match=f"^{tmp_path}/a.crt: No such file or directory$"):
            ServerTls(str(tmp_path / "a.crt"), str(tmp_path / "a.key"))

    def test_a_pair_that_does_not_fit_is_named(self, authority: Authority, tmp_path: Path) -> None:
        cert_file, _ = authority.issue("a").write(tmp_path, "a")
        _, key_file = authority.issue("b").write(tmp_path, "b")
        with pytest.raises(tls.Unusable, match=f"^{cert_file} and {key_file} are not a matching"):
            ServerTls(cert_file, key_file)

    def test_a_client_ca_that_is_none_is_named(self, authority: Authority, tmp_path: Path) -> None:
        files = authority.issue("server").write(tmp_path, "server")
        (tmp_path / "ca.crt").write_text("nothing")
        with pytest.raises(tls.Unusable, match=f"^{tmp_path}/ca.crt contains no CA certificate"):
            ServerTls(*files, str(tmp_path / "ca.crt"))


class TestExpiry:
    def test_the_end_of_the_served_certificate_is_known(
        self, authority: Authority, tmp_path: Path
    ) -> None:
        ends = NOW + timedelta(days=3)
        served = ServerTls(*authority.issue("a", not_after=ends).write(tmp_path, "a"))

        assert ends == served.expires_at
        assert served.fault(NOW) is None
        assert f"the certificate in {tmp_path}/a.crt expired at {ends.isoformat()}" == served.fault(
            ends
        )

    def test_a_reload_moves_it(self, authority: Authority, tmp_path: Path) -> None:
        soon = authority.issue("a", not_after=NOW + timedelta(days=1))
        served = ServerTls(*soon.write(tmp_path, "a"))
        authority.issue("a").write(tmp_path, "a")
        served.reload()

        assert NOT_AFTER == served.expires_at
