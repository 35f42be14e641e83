"""The host's apt sources say where Debian is, in both of their styles."""

from pathlib import Path

import pytest

from sandbox.assets import apt, packages
from sandbox.assets.apt import Mirror
from sandbox.assets.settings import DebianSettings

ONE_LINE = """
# deb http://commented.test/debian bookworm main
deb http://one.test/debian/ bookworm main contrib # the usual
deb-src http://source.test/debian bookworm main
deb [arch=amd64 check-valid-until=no] https://two.test/mirror/of/it bookworm-updates main
deb http://security.test/debian-security bookworm-security main
deb [signed-by=/x] https://third.test/party stable-tools main
deb cdrom:[Debian]/ bookworm main
deb https://docker.test/linux/debian bookworm stable
"""

DEB822 = """# Modernized
Types: deb deb-src
URIs: http://three.test/debian
  http://four.test/debian/
Suites: trixie trixie-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Enabled: no
Types: deb
URIs: http://disabled.test/debian
Suites: trixie
Components: main

# a comment between
Types: deb
URIs: https://five.test/apt
Suites: sid
# and within
Components: main non-free
Check-Valid-Until: no
"""


def etc(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_one_line_sources_are_read(tmp_path: Path) -> None:
    found = apt.mirrors(etc(tmp_path, {"sources.list": ONE_LINE}))

    assert found == [
        Mirror(address="http://one.test/debian"),
        Mirror(address="https://two.test/mirror/of/it", check_expiry=False),
    ]


def test_deb822_sources_are_read(tmp_path: Path) -> None:
    found = apt.mirrors(etc(tmp_path, {"sources.list.d/debian.sources": DEB822}))

    assert found == [
        Mirror(address="http://three.test/debian"),
        Mirror(address="http://four.test/debian"),
        Mirror(address="https://five.test/apt", check_expiry=False),
    ]


def test_mirror_lists_are_followed(tmp_path: Path) -> None:
    listed = tmp_path / "mirrors" / "debian.list"
    sources = f"Types: deb\nURIs: mirror+file:{listed}\nSuites: trixie\nComponents: main\n"
    files = {
        "mirrors/debian.list": "# near first\nhttp://near.test/debian\tpriority:1\nhttp://far.test/debian\n",
        "sources.list.d/debian.sources": sources,
    }

    found = apt.mirrors(etc(tmp_path, files))

    assert [mirror.address for mirror in found] == [
        "http://near.test/debian",
        "http://far.test/debian",
    ]


def test_mirrors_at_the_usual_path_come_first(tmp_path: Path) -> None:
    sources = "deb http://a.test/apt sid main\ndeb http://b.test/debian sid main\n"

    found = apt.mirrors(etc(tmp_path, {"sources.list.d/x.list": sources}))

    assert [mirror.address for mirror in found] == ["http://b.test/debian", "http://a.test/apt"]


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param({}, id="no apt"),
        pytest.param(
            {"sources.list": "deb http://u.test/ubuntu noble main universe\n"}, id="Ubuntu"
        ),
    ],
)
def test_another_distribution_has_no_debian_mirror(tmp_path: Path, sources: dict[str, str]) -> None:
    assert apt.mirrors(etc(tmp_path, sources)) == []


def test_a_mirror_that_is_set_replaces_the_hosts(tmp_path: Path) -> None:
    etc(tmp_path, {"sources.list": ONE_LINE})
    host = apt.parse_configuration("")

    found = packages.mirrors(DebianSettings(mirror="http://own.test/debian"), host, tmp_path)

    assert found == [Mirror(address="http://own.test/debian")]


@pytest.mark.parametrize(
    ("dump", "ignore_expiry", "expected"),
    [
        pytest.param("", False, True, id="by default it counts"),
        pytest.param('Acquire::Check-Valid-Until "false";\n', False, False, id="not to the host"),
        pytest.param("", True, False, id="not to the user"),
    ],
)
def test_expiry_counts_unless_host_or_user_say_otherwise(
    tmp_path: Path, dump: str, ignore_expiry: bool, expected: bool
) -> None:
    etc(tmp_path, {"sources.list": "deb http://a.test/debian sid main\n"})
    settings = DebianSettings(ignore_expiry=ignore_expiry)

    (mirror,) = packages.mirrors(settings, apt.parse_configuration(dump), tmp_path)

    assert mirror.check_expiry == expected


def test_apts_proxies_are_used() -> None:
    dump = (
        'Acquire::http "";\nAcquire::http::Proxy "http://proxy.test:3128";\n'
        'Acquire::https::Proxy "DIRECT";\nAcquire::http::Proxy::host.test "DIRECT";\n'
    )

    expected = {"http": "http://proxy.test:3128", "https": ""}
    assert expected == apt.parse_configuration(dump).proxies
