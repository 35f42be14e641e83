"""Write the table of bounds in `docs/security.md` from the constants that set them: page in, page out.

Text outside the marks of the page is kept (`make docs`).
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Final

_MARK, _END = "<!-- bounds -->\n", "<!-- end of bounds -->"
_HEAD = "| door | bound | value | constant | test |\n| --- | --- | --- | --- | --- |\n"
_MIB, _KIB = 2**20, 2**10

_SERVE = "slurmruntime.process.serve"
_ACCEPTING = "slurmruntime.process.accepting"
_RECEPTION = "slurmexporter.door.reception"
_SERVE_TESTS = "tests/process/test_serve.py::"
_FLOODS = "tests/fuzz/test_floods.py::"
_DOOR = "tests/exporter/test_door.py::"
_HTTPS = "webhook, extender, escrow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One line of the table."""

    door: str
    what: str
    constant: str
    """`package.module:NAME`."""
    test: str

    @property
    def value(self) -> str:
        """The constant's value, in words: bytes where it counts those, seconds where its name ends so."""
        module, _, name = self.constant.partition(":")
        value = getattr(import_module(module), name)
        if name.endswith("_S"):
            return f"{value:g} s"
        if "BYTES" in name or "ANSWER" in name:
            return f"{value // _MIB} MiB" if value >= _MIB else f"{value // _KIB} KiB"
        return f"{value}"


def _bounds(door: str, *rows: tuple[str, str, str]) -> Iterable[Bound]:
    for what, constant, test in rows:
        yield Bound(door=door, what=what, constant=constant, test=test)


BOUNDS: Final = (
    *_bounds(
        _HTTPS,
        ("connections whose request has come, and as many others", f"{_SERVE}:MOST_CONNECTIONS", f"{_FLOODS}test_heads_of_very_many_connections_cost_little_together"),
        ("a connection that has not asked closes none that has", f"{_SERVE}:MOST_CONNECTIONS", f"{_SERVE_TESTS}TestConnections::test_those_that_ask_nothing_close_none_that_waits_for_its_response"),
        ("bodies that do not come hold no place of others", f"{_SERVE}:MOST_CONNECTIONS", f"{_SERVE_TESTS}TestConnections::test_bodies_that_do_not_come_keep_nobody_out"),
        ("TLS handshakes at once", f"{_ACCEPTING}:MOST_HANDSHAKES", f"{_FLOODS}test_handshakes_that_never_begin_cost_little_together"),
        ("time of a handshake", f"{_ACCEPTING}:HANDSHAKE_S", f"{_FLOODS}test_handshakes_that_never_begin_cost_little_together"),
        ("a head", f"{_SERVE}:HEAD_LIMIT_BYTES", f"{_SERVE_TESTS}TestBodyLimit::test_a_head_without_end_is_cut"),
        ("all heads being received", f"{_SERVE}:HEADS_LIMIT_BYTES", f"{_FLOODS}test_heads_of_very_many_connections_cost_little_together"),
        ("trailers and sizes of chunks of a request", f"{_SERVE}:HEAD_LIMIT_BYTES", "tests/fuzz/test_ahead.py::test_what_belongs_to_no_body_is_bounded"),
        ("requests ahead of their responses", f"{_SERVE}:MOST_AHEAD", "tests/fuzz/test_ahead.py::test_requests_far_ahead_of_their_responses_cost_little"),
        ("time for a head, and for a body", f"{_SERVE}:REQUEST_S", f"{_SERVE_TESTS}TestBodyLimit::test_a_head_that_does_not_come_is_not_waited_for"),
        ("all responses that are not taken at once", "slurmruntime.process.entrance:RESPONSES_LIMIT_BYTES", "tests/fuzz/test_ahead.py::test_responses_that_nobody_takes_are_bounded_together"),
        ("time for a response to be taken", f"{_SERVE}:REQUEST_S", "tests/fuzz/test_ahead.py::test_a_response_that_nobody_takes_is_not_kept_for_ever"),
    ),
    *_bounds(
        "webhook, extender",
        ("a body", f"{_SERVE}:BODY_LIMIT_BYTES", f"{_FLOODS}test_long_bodies_are_refused_one_after_another"),
        ("all bodies being received", f"{_SERVE}:BODIES_LIMIT_BYTES", f"{_FLOODS}test_many_halves_of_long_bodies_hold_no_more_than_all_may"),
    ),
    *_bounds(
        "webhook",
        ("SlurmJobs that wait for their review", "webhook.apart:MOST_BYTES", "tests/webhook/test_dear_scripts.py::test_a_flood_of_dear_scripts_lets_pods_pass"),
        ("the same of one namespace", "webhook.apart:MOST_BYTES_OF_ONE", "tests/webhook/test_turns.py::test_one_namespace_does_not_fill_what_may_wait"),
        ("time that one waits", "webhook.apart:LONGEST_WAIT_S", "tests/webhook/test_dear_scripts.py::test_a_flood_of_dear_scripts_lets_pods_pass"),
    ),
    *_bounds(
        "extender",
        ("objects remembered of owners", "extender.memory:MOST_BYTES", "tests/extender/test_memory.py::test_large_objects_push_out_the_oldest"),
    ),
    *_bounds(
        "health, metrics",
        ("connections whose request has come, and as many others", "slurmruntime.process.health:MOST_CONNECTIONS", "tests/process/test_health.py::test_a_probe_is_answered_while_somebody_holds_many_connections"),
        ("age of the metrics, which are written once for all scrapes", "slurmruntime.process.health:EXPOSITION_S", "tests/process/test_health.py::test_the_metrics_are_written_out_once_a_second_however_often_they_are_scraped"),
    ),
    *_bounds(
        "escrow",
        ("connections that have shown the token, and as many others", "bridge.escrow.endpoint:MOST_CONNECTIONS", "tests/escrow/test_endpoint.py::test_who_has_no_token_closes_no_connection_of_a_script_that_waits"),
        ("a body, which is read after the token only", "bridge.escrow.endpoint:BODY_LIMIT_BYTES", "tests/escrow/test_endpoint.py::test_without_the_token_no_body_is_waited_for"),
        ("jobs that are followed", "bridge.escrow.job_hints:_MOST", "tests/escrow/test_job_hints.py::test_of_a_flood_only_so_many_are_followed"),
        ("checks at once, however many wait", "bridge.escrow.launch_gate:_AT_A_TIME", "tests/escrow/test_launch_gate.py::test_many_who_wait_share_a_few_looks_at_slurm"),
    ),
    *_bounds(
        "slurm-exporter",
        ("connections that have not asked what may be answered", f"{_RECEPTION}:MOST_STRANGERS", f"{_DOOR}test_a_crowd_that_holds_connections_does_not_stop_scrapes"),
        ("connections that have", f"{_RECEPTION}:MOST_CALLERS", f"{_DOOR}test_who_has_no_credential_closes_no_admitted_connection"),
        ("time of a handshake", f"{_RECEPTION}:HANDSHAKE_S", f"{_DOOR}test_a_crowd_that_holds_connections_does_not_stop_scrapes"),
        ("time for a head", f"{_RECEPTION}:HEAD_S", f"{_DOOR}test_a_head_that_never_ends_is_cut"),
        ("passwords that wait to be checked", "slurmexporter.door.passwords:MOST_WAITING", "tests/exporter/test_web_config.py::test_of_a_flood_of_passwords_only_some_wait_and_the_right_one_does_not"),
        ("the web configuration file", "slurmexporter.door.web_config:LONGEST_BYTES", "tests/exporter/test_web_config.py::test_what_is_no_such_document_is_refused"),
    ),
    *_bounds(
        "out: slurmrestd",
        ("an answer", "slurmruntime.slurm.client:LONGEST_ANSWER_BYTES", "tests/client/transport/test_failover.py::test_an_answer_that_is_too_long_is_not_taken_into_memory"),
        ("a list of nodes, read in slices", "bridge.slurm.nodes:MOST_NODES_BYTES", "tests/fuzz/test_long_lists.py::test_a_list_of_nodes_beyond_all_bounds_is_left_in_the_middle"),
        ("a list of jobs, read in slices", "bridge.slurm.queue:MOST_JOBS_BYTES", "tests/fuzz/test_long_lists.py::test_live_jobs_are_read_in_slices_too"),
        ("an answer of a Slurm in pods", "bridge.reconcile.program:_LONGEST_ANSWER", "tests/client/transport/test_failover.py::test_an_answer_that_is_too_long_is_not_taken_into_memory"),
        ("connections to each Slurm in pods", "bridge.reconcile.program:_TO_EACH_SLURM", "tests/docs/test_bounds.py::test_the_page_has_the_bounds_of_the_code"),
    ),
    *_bounds(
        "out: API server",
        ("connections of a side that leads", "bridge.reconcile.program:_CONNECTIONS", "tests/docs/test_bounds.py::test_the_page_has_the_bounds_of_the_code"),
        ("objects in one answer to a list", "slurmruntime.kube.lists:_PAGE", "tests/docs/test_bounds.py::test_the_page_has_the_bounds_of_the_code"),
    ),
)  # fmt: skip


def render(page: str) -> str:
    """Return the page with a fresh table."""
    rows = "".join(
        f"| {one.door} | {one.what} | {one.value} | `{one.constant.replace(':', '.')}` | `{one.test}` |\n"
        for one in BOUNDS
    )
    before, mark, rest = page.partition(_MARK)
    _, end, after = rest.partition(_END)
    return f"{before}{mark}{_HEAD}{rows}{end}{after}"


if __name__ == "__main__":
    sys.stdout.write(render(sys.stdin.read()))
