"""Who is on the pages: each label is known to name users, or not to."""

from slurmexporter.families import catalogue
from slurmexporter.text.family import gauge
from slurmexporter.text.people import LABELS, has_people, without_people

OTHERS = frozenset(
    {
        "account", "accountname", "api", "cluster", "chapter", "data", "feature", "flag", "flags", "gres", "job_id", "kind", "le",
        "license", "limit", "name", "names", "node", "partition", "qos", "reason", "reservation", "resource",
        "role", "source", "state", "status", "tres", "type", "version", "host", "accounts",
    }
)  # fmt: skip
"""Labels of things. `name` is a job's, and only there with --job-info."""


def test_every_label_names_users_or_is_known_not_to() -> None:
    families = {
        family
        for chapters in catalogue.NAMES.values()
        for chapter in chapters
        for family in chapter.families
    }
    labels = {label for family in families for label in family.labels}
    assert set() == labels - LABELS - OTHERS
    assert sum(map(has_people, families)) > 10


def test_series_about_users_go_and_others_keep_their_place() -> None:
    jobs = gauge("slurm_user_jobs", "Jobs.", "user", "state")
    shares = gauge("slurm_share_raw", "Shares.", "account", "user")
    reason = gauge("slurm_node_reason_info", "Why.", "node", "user")
    nodes = gauge("slurm_nodes", "Nodes.")
    assert [
        (shares, [(("physics", ""), 2.0)]),
        (reason, [(("a", ""), 1.0), (("b", ""), 1.0)]),
        (nodes, [((), 4.0)]),
    ] == [
        *without_people(
            [
                (jobs, [(("alice", "RUNNING"), 3.0), (("(other)", "RUNNING"), 1.0)]),
                (shares, [(("physics", ""), 2.0), (("physics", "alice"), 1.0)]),
                (reason, [(("a", "root"), 1.0), (("b", ""), 1.0)]),
                (nodes, [((), 4.0)]),
            ]
        )
    ]
