"""Sources of tokens, and reading and minting them."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slurmclient import Client
from slurmclient.errors import Unauthorized
from slurmclient.fake import FakeSlurm
from slurmclient.transport import jwt, tokens
from slurmclient.transport.tokens import JwtKey, Token, TokenCommand, TokenFile


def end_of(token: str) -> float | None:
    end = jwt.expires_at(token)
    return end.timestamp() if end else None


async def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("SLURM_JWT=one\n")
    source = TokenFile(file)
    assert "one" == await source.token()
    (tmp_path / "new").write_text("two")
    os.replace(tmp_path / "new", file)  # noqa: PTH105  # the call that renewers make
    assert "two" == await source.token()


async def test_a_file_says_when_its_token_expires(tmp_path: Path) -> None:
    file = tmp_path / "token"
    source = TokenFile(file)
    assert source.expires_at is None
    file.write_text(jwt.mint(b"k", user="root", now_s=0, lifetime_s=50))
    assert datetime(1970, 1, 1, 0, 0, 50, tzinfo=UTC) == source.expires_at
    file.write_text("no token")
    assert source.expires_at is None


@pytest.mark.parametrize("content", [None, ""])
async def test_a_file_without_a_token_says_which_file(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    with pytest.raises(Unauthorized, match=str(file)):
        await TokenFile(file).token()


async def test_a_key_mints_a_token_for_its_user_and_renews_it_before_its_end() -> None:
    now = [1_000_000.0]
    source = JwtKey(b"k" * 32, user="alice", lifetime_s=100, clock=lambda: now[0])
    first = await source.token()
    assert 1_000_100 == end_of(first)
    now[0] += 79
    assert first == await source.token()
    now[0] += 2
    second = await source.token()
    assert 1_000_181 == end_of(second)
    now[0] += 1
    assert second != await source.token(refused=second)


def test_a_token_says_whose_it_is() -> None:
    assert "alice" == jwt.user_of(jwt.mint(b"k", user="alice", now_s=0, lifetime_s=1))
    assert ["", "", ""] == [jwt.user_of(text) for text in ("", "garbage", "a.e30.c")]


async def test_a_key_that_cannot_be_read_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(Unauthorized, match=str(tmp_path / "absent")):
        await JwtKey(tmp_path / "absent").token()


async def test_a_command_is_run_again_when_its_token_nears_its_end(tmp_path: Path) -> None:
    now = [1_000_000.0]
    token = jwt.mint(b"k", user="root", now_s=1_000_000, lifetime_s=100)
    runs = tmp_path / "runs"
    script = f"print('SLURM_JWT={token}'); open({str(runs)!r}, 'a').write('x')"
    source = TokenCommand((sys.executable, "-c", script), clock=lambda: now[0])
    assert [token, token] == [await source.token(), await source.token()]
    assert "x" == runs.read_text()
    now[0] += 81
    await source.token()
    assert "xx" == runs.read_text()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        pytest.param("import sys; sys.exit('no key here')", "exit code 1: no key here", id="fails"),
        pytest.param("pass", "exit code 0", id="prints nothing"),
    ],
)
async def test_a_command_without_a_token_says_why(script: str, words: str) -> None:
    with pytest.raises(Unauthorized, match=words):
        await TokenCommand((sys.executable, "-c", script)).token()


async def test_the_environment_gives_a_token_or_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JWT", raising=False)
    monkeypatch.setenv("SLURM_JWT_FILE", "/x")
    assert isinstance(tokens.from_environment(), TokenFile)
    monkeypatch.setenv("SLURM_JWT", "t")
    found = tokens.from_environment()
    assert isinstance(found, Token)
    assert "t" == await found.token()


@pytest.mark.parametrize("text", ["one\ntwo", "a\0b", "a b", "a\x1b[0m"])
async def test_a_token_that_no_header_can_hold_is_told_as_no_token(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    async with FakeSlurm(nodes=1) as fake, Client(fake.url, token=TokenFile(file)) as slurm:
        with pytest.raises(Unauthorized, match="control characters") as raised:
            await slurm.nodes.list()
        assert text not in str(raised.value)
        file.write_text("good")
        assert 1 == len(await slurm.nodes.list())
