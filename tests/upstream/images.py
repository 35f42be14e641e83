"""The images that Kubernetes' tests name, made here: programs of its own module, and busybox.

What they do is what upstream's do as far as these tests look; they are not the same bytes.
"""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from sandbox.assets import Asset
from sandbox.realnodes import images
from sandbox.realnodes.images import Entry, Image

REGISTRY = "registry.k8s.io"
_BUSYBOX = f"{REGISTRY}/e2e-test-images/busybox"
_AGNHOST = f"{REGISTRY}/e2e-test-images/agnhost"
_NGINX = f"{REGISTRY}/e2e-test-images/nginx"
_NONROOT = f"{REGISTRY}/e2e-test-images/nonroot"
_NO_NEW_PRIVILEGES = f"{REGISTRY}/e2e-test-images/nonewprivs"
_PAUSE = f"{REGISTRY}/pause"
_SERVE = ("/bin/httpd", "-f", "-p", "80", "-h", "/srv")
_SET_USER_ID = 0o4755


def build(named: list[str], e2e: Asset, kube: Asset, node: Asset, folder: Path) -> list[Path]:
    """Make those of the named images that we can, into `folder`; return their archives."""
    if node.root is None:
        raise ValueError(f"{node.bin} has no root/ beside it")
    box = node.root / "usr" / "bin" / "busybox"
    listed = subprocess.run([box, "--list"], check=True, capture_output=True, text=True)
    applets = listed.stdout.split()
    base = list(images.busybox_entries(box, applets))
    pause = (kube.bin / "pause").read_bytes()
    made: Mapping[str, tuple[Image, list[Entry]]] = {
        _BUSYBOX: (Image(name="", command=("sh",)), base),
        _NONROOT: (Image(name="", command=("sh",), user="1234"), base),
        _AGNHOST: (
            Image(name="", entrypoint=("/agnhost",), command=("pause",)),
            [*base, *_agnhost((e2e.bin / "agnhost").read_bytes())],
        ),
        _NGINX: (
            Image(name="", command=_SERVE),
            [*base, Entry(path="srv", is_folder=True), Entry(path="srv/index.html", data=b"ok\n")],
        ),
        _NO_NEW_PRIVILEGES: (
            Image(name="", command=("nnp",)),
            [*base, *_no_new_privileges((e2e.bin / "nonewprivs").read_bytes())],
        ),
        _PAUSE: (Image(name="", entrypoint=("/pause",)), [Entry(path="pause", data=pause)]),
    }
    archives: list[Path] = []
    for name in named:
        kind = name.rpartition(":")[0]
        if kind in made:
            image, entries = made[kind]
            archive = folder / f"{len(archives)}.tar"
            images.archive(archive, image.called(name), images.layer_of(entries))
            archives.append(archive)
    return archives


def _agnhost(program: bytes) -> Iterator[Entry]:
    yield Entry(path="agnhost", data=program)
    yield Entry(path="agnhost-2", link="agnhost")
    yield Entry(path="uploads", is_folder=True)


def _no_new_privileges(program: bytes) -> Iterator[Entry]:
    for folder in ("usr", "usr/local", "usr/local/bin"):
        yield Entry(path=folder, is_folder=True)
    yield Entry(path="usr/local/bin/nnp", data=program, mode=_SET_USER_ID)
