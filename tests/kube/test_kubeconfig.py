"""What is read without kubernetes_asyncio is what kubernetes_asyncio reads."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurmruntime.kube.kubeconfig import any_kubeconfig, kubeconfig
from slurmruntime.kube.kubeconfig.kubeconfig import Connection, NotPlain, Unloadable

SERVER = {"server": "https://api.example.com:6443/"}
DATA = {"certificate-authority-data": base64.b64encode(b"ca").decode()}
PAIR = {"client-certificate": "client.crt", "client-key": "keys/../client.key"}
PAIR_DATA = {
    "client-certificate-data": base64.b64encode(b"certificate").decode(),
    "client-key-data": base64.b64encode(b"key").decode(),
}


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        pytest.param({}, {}, id="nobody"),
        pytest.param(DATA, {"token": "abc"}, id="token"),
        pytest.param(DATA, {"tokenFile": "token"}, id="token file"),
        pytest.param(DATA, {"token": "abc", "tokenFile": "token"}, id="token and file"),
        pytest.param({"certificate-authority": "ca.crt"}, PAIR, id="files"),
        pytest.param(DATA, PAIR_DATA, id="data"),
        pytest.param({**DATA, "certificate-authority": "none"}, PAIR_DATA, id="data before files"),
        pytest.param({"insecure-skip-tls-verify": True}, {"token": "abc"}, id="insecure"),
        pytest.param({"tls-server-name": "kubernetes"}, {}, id="server name"),
        pytest.param({"proxy-url": "http://proxy:3128"}, {}, id="proxy"),
        pytest.param({"server": "http://localhost:8001", **DATA}, PAIR, id="no TLS"),
    ],
)
async def test_both_read_the_same(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    path = written(tmp_path, cluster, user)

    assert contents(await any_kubeconfig.read(path)) == contents(kubeconfig.read(path))


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        pytest.param({}, {"exec": {"command": "aws"}}, id="plug-in"),
        pytest.param({}, {"auth-provider": {"name": "oidc"}}, id="OIDC"),
        pytest.param({}, {"username": "a", "password": "b"}, id="password"),
        pytest.param({}, {"token": 7}, id="no text"),
        pytest.param({}, {"client-certificate-data": "abc"}, id="no base64"),
        pytest.param({"certificate-authority": "never.crt"}, {}, id="no file"),
        pytest.param({"server": ""}, {}, id="no server"),
    ],
)
def test_anything_else_is_left_to_the_library(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    with pytest.raises(NotPlain):
        kubeconfig.read(written(tmp_path, cluster, user))


def test_of_two_users_with_one_name_none_is_taken(tmp_path: Path) -> None:
    path = Path(written(tmp_path, {}, {"token": "abc"}))
    config = yaml.safe_load(path.read_text())
    config["users"] *= 2
    path.write_text(yaml.safe_dump(config))

    with pytest.raises(NotPlain):
        kubeconfig.read(str(path))


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
@pytest.mark.parametrize("content", [None, ""])
def test_a_service_account_without_one_of_its_files_is_refused(
    tmp_path: Path, missing: str, content: str | None
) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    (tmp_path / "token").write_text("abc")
    (tmp_path / "ca.crt").write_text("ca")
    (tmp_path / missing).unlink()
    if content is not None:
        (tmp_path / missing).write_text(content)

    with pytest.raises(Unloadable, match=missing):
        kubeconfig.of_service_account(tmp_path, environ)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ""), ("[]", ""), ("{", ""), (None, "")],
)
def test_a_bad_kubeconfig_has_no_namespace(tmp_path: Path, text: str | None, expected: str) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)

    assert expected == kubeconfig.namespace(str(path))


def test_the_namespace_is_the_current_contexts(tmp_path: Path) -> None:
    assert "team-a" == kubeconfig.namespace(written(tmp_path, {}, {}))


def written(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> str:
    """A kubeconfig in a folder with the files it may name."""
    for name in ("ca.crt", "client.crt", "client.key", "token"):
        (folder / name).write_text(f"content of {name}")
    (folder / "keys").mkdir()
    path = folder / "kubeconfig"
    context = {"cluster": "c", "user": "u", "namespace": "team-a"}
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "x",
                "contexts": [{"name": "x", "context": context}],
                "clusters": [{"name": "c", "cluster": {**SERVER, **cluster}}],
                "users": [{"name": "u", "user": user}, {"name": "v", "user": {"exec": {}}}],
            }
        )
    )
    return str(path)


def contents(connection: Connection) -> dict[str, object]:
    """What a connection says, without the names of temporary files."""
    pems = (connection.ca, connection.certificate, connection.key)
    return {
        "server": connection.server,
        "authorization": connection.authorization,
        "pems": [pem and pem.content for pem in pems],
        "verifies": connection.verifies,
        "server_name": connection.server_name,
        "proxy": connection.proxy,
    }
