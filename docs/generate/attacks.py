"""Write the threat model in `docs/security.md`: for each actor, the attacks that tests try. Page in, page out.

A test carries `pytest.mark.attack(attack, why it fails)`, and so does a case that
`tests.attacks.attack` makes. Only the sources are read. Text outside the marks of the page is kept (`make docs`).
"""

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeGuard

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "integration",
    "chart",
    "slurmoperator",
    "slurmjobs",
    "webhook",
    "extender",
    "slurm",
    "fuzz",
    "kube",
    "slurmcli",
    "exporter",
    "escrow",
    "controllers",
    "leading",
)
"""Of `tests`, in the order of the list: what an ordinary user can try comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A kind of enemy."""

    title: str
    has: str
    wants: str
    remains: str
    """What we do not hold them back from."""


TENANT = Actor(
    title="A tenant",
    has="the role `edit` in a namespace, bridged or not, and the right to create SlurmJobs or objects of slurm-operator there; some attacks are tried by administrators, too",
    wants="nodes without a job or beyond it, another user's account, root, others' pods ended, our programs stopped",
    remains="in a bridged namespace, what its own jobs may; where containers need no limits, idle CPUs and memory of its nodes ([above](#what-a-pod-may-use))",
)
SLURM_USER = Actor(
    title="A Slurm user",
    has="an account in Slurm, with jobs of one's own, some of them placeholders of one's pods",
    wants="pods that compute without being charged, others' jobs and nodes",
    remains="ending one's own placeholders, which ends their pods; [reading](#what-every-slurm-user-can-read) who runs what, unless `PrivateData=jobs`",
)
NODE = Actor(
    title="A node",
    has="a kubelet's credentials, and root on one machine",
    wants="other nodes' pods and jobs, Slurm's token",
    remains="everything that runs on that machine; with `agent.pin_cores`, reading all pods ([above](#what-a-stolen-token-can-do))",
)
TOKEN = Actor(
    title="A thief of a token",
    has="a token of one of our own programs' accounts",
    wants="root on nodes, others' Secrets, all pods",
    remains="what is in bold [above](#what-a-stolen-token-can-do); and with Slurm's token beside it, jobs of any user",
)
NEIGHBOUR = Actor(
    title="A neighbour cluster",
    has="another Kubernetes cluster with slurm-bridge on the same Slurm, or a copy of this one",
    wants="nothing, but takes our jobs and nodes for its own",
    remains="draining nodes of the same names until it is stopped",
)
NETWORK = Actor(
    title="An attacker in the network",
    has="no credentials; reaches our ports, or sits between us and an API",
    wants="secrets, silence of our programs, all memory",
    remains="reading Slurm's RPC where it has no TLS ([above](#transport)); cutting us off, which ends no pod",
)
ACTORS: Sequence[Actor] = (TENANT, SLURM_USER, NODE, TOKEN, NEIGHBOUR, NETWORK)
BY_FILE: Mapping[str, Actor] = MappingProxyType(
    {
        "tests/chart/test_policies_accounts.py": TOKEN,
        "tests/chart/test_policies_nodes.py": NODE,
        "tests/chart/test_policies_other_tokens.py": TOKEN,
        "tests/controllers/test_lying_nodes.py": NODE,
        "tests/chart/test_rotation.py": NETWORK,
        "tests/exporter/test_hostile_jobs.py": SLURM_USER,
        "tests/fuzz/test_ahead.py": NETWORK,
        "tests/fuzz/test_between.py": NETWORK,
        "tests/fuzz/test_endpoints.py": NETWORK,
        "tests/fuzz/test_floods.py": NETWORK,
        "tests/fuzz/test_jobs_of_strangers.py": SLURM_USER,
        "tests/fuzz/test_neighbours.py": NEIGHBOUR,
        "tests/fuzz/test_tls_between.py": NETWORK,
        "tests/fuzz/test_wrong_answers.py": NETWORK,
        "tests/integration/test_copies.py": NEIGHBOUR,
        "tests/integration/test_doors_of_accounts.py": TOKEN,
        "tests/integration/test_doors_of_nodes_and_time.py": NODE,
        "tests/integration/test_doors_of_slurm.py": SLURM_USER,
        "tests/integration/test_doors_of_the_network.py": NETWORK,
        "tests/integration/test_odd_bytes.py": SLURM_USER,
        "tests/integration/test_selftest.py": TOKEN,
        "tests/integration/test_shrunk.py": SLURM_USER,
        "tests/integration/test_signals.py": SLURM_USER,
        "tests/integration/test_watches.py": NETWORK,
        "tests/slurm/test_unreadable_own_jobs.py": SLURM_USER,
        "tests/slurmcli/test_forged_lines.py": SLURM_USER,
    }
)
"""Who tries the attacks of a file; a tenant those of all others."""
BY_TEST: Mapping[str, Actor] = MappingProxyType(
    {
        "test_a_lowered_limit_gains_no_time": SLURM_USER,
        "test_who_reads_nothing_costs_no_copy_of_the_page_and_no_place": NETWORK,
        "test_a_stranger_cannot_ask_the_extender": NETWORK,
        "test_a_suspended_pod_is_evicted": SLURM_USER,
        "test_an_expired_token_is_replaced_without_a_restart_and_nothing_secret_is_said": NETWORK,
        "test_an_identity_in_a_comment_is_none": SLURM_USER,
        "test_a_device_of_the_same_name_on_another_node_is_in_nobodys_way": NODE,
        "test_a_kubelet_creates_no_mirror_pod_that_looks_placed": NODE,
        "test_a_lease_is_left_to_a_holder_who_is_gone_for_a_minute_whatever_it_says": TOKEN,
        "test_a_question_of_the_future_is_none": TOKEN,
        "test_an_owner_of_another_namespace_owns_nothing_here": TENANT,
        "test_nobody_without_the_token_is_invited_to_send_a_body": NETWORK,
        "test_no_account_of_ours_reads_other_peoples_secrets": TOKEN,
        "test_no_companion_has_a_secret_in_its_environment": TOKEN,
        "test_no_companion_looks_placed": TOKEN,
        "test_no_companion_runs_beside_the_control_plane_or_at_the_cost_of_others": TOKEN,
        "test_not_even_our_controllers_change_whose_it_is": TOKEN,
        "test_the_account_creates_nothing_else": TOKEN,
        "test_the_webhooks_account_may_do_nothing": TOKEN,
        "test_who_cancels_many_own_jobs_keeps_no_pod_and_holds_back_nobodys": SLURM_USER,
    }
)
"""Tests whose actor is not that of their file."""

_MARK, _END = "<!-- attacks -->\n", "<!-- end -->"
_HEAD = "| attack | why it fails | test |\n| --- | --- | --- |\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One line of the list."""

    what: str
    why: str
    test: str
    """`tests/integration/test_attacks.py::test_a_forged_label…`, with `[id]` for one case of several."""

    @property
    def actor(self) -> Actor:
        """Who tries it."""
        file, _, case = self.test.partition("::")
        return BY_TEST.get(case.partition("[")[0]) or BY_FILE.get(file, TENANT)


def attacks(root: Path = ROOT) -> Iterator[Attack]:
    """Yield all attacks, file by file, in the order of their tests."""
    files = (path for folder in FOLDERS for path in sorted((root / "tests" / folder).glob("*.py")))
    for path in files:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                test = f"{path.relative_to(root)}::{node.name}"
                for decorator in node.decorator_list:
                    yield from _marked(decorator, test)


def render(page: str, root: Path = ROOT) -> str:
    """Return the page with a fresh list."""
    tried = list(attacks(root))
    tests = len({one.test.partition("[")[0] for one in tried})
    parts = "\n".join(_part(actor, tried) for actor in ACTORS)
    before, mark, rest = page.partition(_MARK)
    _, end, after = rest.partition(_END)
    return f"{before}{mark}{len(tried)} attacks, tried by {tests} tests:\n\n{parts}{end}{after}"


def _part(actor: Actor, tried: Sequence[Attack]) -> str:
    """Return what stands under an actor's heading."""
    rows = "".join(
        f"| {one.what} | {one.why} | `{one.test}` |\n" for one in tried if one.actor is actor
    )
    lines = (f"has: {actor.has}", f"wants: {actor.wants}", f"remains: {actor.remains}")
    items = "".join(f"* {line}\n" for line in lines)
    return f"### {actor.title}\n\n{items}\n{_HEAD}{rows}"


def _marked(decorator: ast.expr, test: str) -> Iterator[Attack]:
    if _is_call(decorator, "pytest.mark.attack"):
        yield _attack(decorator.args, test)
        return
    for call in ast.walk(decorator):
        if _is_call(call, "attack"):
            case = ast.literal_eval(call.args[0])
            yield _attack(call.args[1:3], f"{test}[{case}]")


def _is_call(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name


def _attack(texts: Sequence[ast.expr], test: str) -> Attack:
    what, why = map(ast.literal_eval, texts)
    return Attack(what=what, why=why, test=test)


if __name__ == "__main__":
    sys.stdout.write(render(sys.stdin.read()))
