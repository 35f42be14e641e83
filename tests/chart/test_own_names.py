"""What our pods' names lead to: a real resolver, under the configuration that a kubelet makes of the chart's."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.chart import names_in_a_pod
from tests.chart.names_in_a_pod import PORT, SITE
from tests.chart.objects import PROGRAMS, pod_spec
from tests.chart.rendering import Rendered

UNSHARE = "/usr/bin/unshare"
pytestmark = pytest.mark.skipif(
    bool(os.getuid()) or not Path(UNSHARE).exists(),
    reason="NOT RUN: namespaces of its own need root and util-linux; CI has both",
)
SEARCH = "slurm-bridge-system.svc.cluster.local svc.cluster.local cluster.local"


def resolv_conf(spec: dict[str, Any]) -> str:
    """What a kubelet writes for dnsPolicy ClusterFirst: the pod's options win (kubelet, network/dns)."""
    options = {"ndots": "5"}
    options |= {
        option["name"]: option["value"] for option in spec.get("dnsConfig", {}).get("options", [])
    }
    told = " ".join(f"{name}:{value}" for name, value in options.items())
    return f"search {SEARCH}\nnameserver 127.0.0.1\noptions {told}\n"


@pytest.mark.attack(
    "answer for slurmrestd or slurmctld by a Service that has its name inside the cluster, and get Slurm's token",
    "our pods look a name with a dot up as it is first",
)
@pytest.mark.parametrize(
    ("host", "unknown", "reached"),
    [
        pytest.param("slurmrestd.hpc", "", {SITE}, id="first as it is"),
        pytest.param("slurmrestd.hpc.", "slurmrestd.hpc", set(), id="with a dot, only as it is"),
    ],
)
def test_a_tenants_service_gets_no_token(
    chart: Rendered, tmp_path: Path, host: str, unknown: str, reached: set[str]
) -> None:
    (configured,) = {resolv_conf(pod_spec(chart, program)) for program in PROGRAMS}
    (tmp_path / "resolv.conf").write_text(configured)
    (tmp_path / "token").write_text("e30.e30.token")

    program = (sys.executable, "-m", names_in_a_pod.__name__)
    asked = (
        str(tmp_path / "resolv.conf"),
        f"http://{host}:{PORT}",
        str(tmp_path / "token"),
        unknown,
    )
    told = subprocess.run(
        (UNSHARE, "--mount", "--net", *program, *asked),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert reached == set(told.stdout.split())
