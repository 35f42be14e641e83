"""Write the policy's decision into the job that slurmrestd gets."""

from dataclasses import replace

from bridge.domain.request.permit import Permit
from slurmjobs.request import description
from slurmjobs.request.build import BatchRequest


def grant(request: BatchRequest, permit: Permit) -> BatchRequest:
    """Return the request with the permitted user and group, and the rule's defaults and time limit."""
    chosen = {
        "account": permit.account,
        "partition": permit.partition,
        "qos": permit.qos,
        "reservation": permit.reservation,
    }
    fields = {
        **request.fields,
        "user_id": permit.user,
        "group_id": permit.group,
        **{name: value for name, value in chosen.items() if value},
    }
    most = permit.time_limit_max_min
    if most is not None and "time_limit" not in fields:
        fields["time_limit"] = description.number(most)
    return replace(request, fields=fields)
