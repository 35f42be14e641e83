"""What the specifications do not say: names, and how to treat what is odd in them."""

import keyword
import re
from typing import Final

OLDEST: Final = 42
"""The oldest version of the API that the client speaks: v0.0.42."""

MUTATING_READS: Final = {"slurm_get_reconfigure", "slurm_get_job_requeue"}
"""GET requests that change something, and must never be repeated."""

NAMES: Final = {
    "assoc": "Association",
    "assoc_shares_obj_wrap": "Share",
    "cluster_rec": "Cluster",
    "controller_ping": "ControllerPing",
    "job": "AccountedJob",
    "job_info": "Job",
    "job_res": "JobResources",
    "kill_jobs_resp_job": "Cancelled",
    "node_resource_layout": "NodeResources",
    "openapi_slurmdbd_config_resp": "DatabaseDump",
    "partition_info": "Partition",
    "process_exit_code_verbose": "ExitCode",
    "reservation_info": "Reservation",
    "shares_resp_msg": "Shares",
    "slurm_conf": "Config",
    "slurm_step_id": "StepId",
    "slurmdbd_conf": "DatabaseConfig",
    "slurmdbd_ping": "DatabasePing",
    "stats_msg": "Statistics",
    "stats_rec": "DatabaseStatistics",
}
"""Classes of schemas whose own names say little; others are the name in CamelCase."""

ROOTS: Final = (
    "assoc_shares_obj_wrap",
    "controller_ping",
    "job_array_response_msg_entry",
    "job_info",
    "kill_jobs_resp_job",
    "license",
    "node",
    "node_resource_layout",
    "partition_info",
    "reservation_info",
    "shares_resp_msg",
    "slurm_conf",
    "stats_msg",
    "account",
    "assoc",
    "cluster_rec",
    "instance",
    "job",
    "openapi_slurmdbd_config_resp",
    "qos",
    "slurmdbd_conf",
    "slurmdbd_ping",
    "stats_rec",
    "tres",
    "user",
    "wckey",
)
"""The schemas to write, with everything that they refer to."""

NULLABLE: Final = {("job_info", "job_resources")}
"""Properties that slurmrestd writes as null: a job without nodes has no resources."""

NOT_MOMENTS: Final = {"pre_sus_time"}
"""Properties that the specification calls UNIX timestamps, but that count seconds."""

CHANGED: Final = {("partition_info__cpus", "task_binding"): "int | frozenset[str]"}
"""Properties whose type differs between versions, with the type to read them as."""


def identifier(name: str) -> str:
    """Return a name of Slurm's as an identifier: `Include usage` is include_usage."""
    python = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.sub(r"\W+", "_", name)).lower()
    taken = keyword.iskeyword(python) or python in {
        "bool",
        "dict",
        "float",
        "frozenset",
        "int",
        "str",
        "tuple",
        "field",
    }
    return f"{python}_" if taken else python
