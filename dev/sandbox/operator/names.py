"""The names of Services on this host, for processes outside the nodes.

    python -m sandbox.operator.names KUBECONFIG HOSTS-FILE

Pods find a Service by its name. The host reaches pods, but no Services, so this program writes a file in the form of
/etc/hosts: for each Service the address of a ready pod behind it. Services and their pods must use the same port.
"""

import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from sandbox.api import Api
from sandbox.errors import SandboxError
from sandbox.instance import Instance
from slurmruntime.model.objects import JsonObject

SLICES = "/apis/discovery.k8s.io/v1/endpointslices"
_PAUSE_S = 1.0
_LOCAL = "127.0.0.1 localhost\n"


def main() -> None:
    """Keep the file up to date until killed; pods come and go."""
    kubeconfig, file = map(Path, sys.argv[1:])
    with Api(kubeconfig) as api:
        while True:
            with suppress(SandboxError):  # the API server is down: keep the file as it is
                write(file, hosts(api.get(SLICES)["items"]))
            time.sleep(_PAUSE_S)


def hosts_file(instance: Instance) -> Path:
    """Return the path of the file."""
    return instance.bridge / "operator" / "hosts"


def with_hosts(hosts: Path) -> tuple[str, ...]:
    """Return the prefix of a command that runs it with this file as its /etc/hosts; it needs root, as real nodes do."""
    mount = 'mount --bind "$0" /etc/hosts && exec "$@"'
    return ("/usr/bin/unshare", "--mount", "/bin/sh", "-c", mount, str(hosts))


def write(file: Path, text: str) -> None:
    """Write the file if its content differs; in place, because it is mounted and a new file would not be seen."""
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def hosts(slices: Iterable[JsonObject] = ()) -> str:
    """Return the file for these EndpointSlices."""
    by_name: dict[str, str] = {}
    for endpoint_slice in slices:
        meta = endpoint_slice["metadata"]
        service = meta.get("labels", {}).get("kubernetes.io/service-name", "")
        ready = [
            endpoint["addresses"][0]
            for endpoint in endpoint_slice.get("endpoints") or ()
            if endpoint.get("conditions", {}).get("ready")
        ]
        if service and ready:
            by_name.setdefault(f"{service}.{meta['namespace']}.svc", min(ready))
    return _LOCAL + "".join(f"{address} {name}\n" for name, address in sorted(by_name.items()))


if __name__ == "__main__":
    main()
