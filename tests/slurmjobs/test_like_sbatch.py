"""The same script makes the same job, whether real sbatch submits it or we do."""

import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmclient import Client, TokenFile
from slurmjobs.script.getopt import Takes
from slurmjobs.script.options import OPTIONS, Treatment
from tests.servers import running_sandbox
from tests.slurmjobs.cases import CASES, HEADERS, SCRIPTS
from tests.slurmjobs.judging import Judge

COMBINATIONS = 40
_WAITS = {"wait"}
"""sbatch would not come back."""
_NOT_HELD = {"priority"}
"""A held job's priority is 0."""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Sandbox]:
    """A Slurm of our own: for five minutes it lists hundreds of jobs, more than one reading looks at."""
    with running_sandbox(Options(kubernetes=False, bridge=False)) as sandbox:
        yield sandbox


@pytest.fixture
async def judge(slurm: Sandbox, tmp_path: Path) -> AsyncIterator[Judge]:
    token = TokenFile(slurm.token_file)
    async with Client(slurm.slurmrestd_url, token=token) as client:
        opened = Judge(slurm, client, tmp_path)
        yield opened
        if opened.submitted:
            await client.jobs.cancel_many(*opened.submitted)


async def _same(judge: Judge, script: bytes, *, held: bool = True) -> None:
    keep_away = ("--hold",) if held else ("--begin=2035-01-01",)
    fields = {"hold": True} if held else {"begin": "2035-01-01"}
    theirs = judge.by_sbatch(script, *keep_away)
    ours = await judge.by_us(script, fields)
    assert bool(theirs.job_id) == bool(ours.job_id), (theirs, ours)
    if theirs.job_id:
        differences = await judge.differences(theirs.job_id, ours.job_id)
        assert not differences, "\n".join(differences)


@pytest.mark.parametrize(
    ("name", "options"), [(name, case) for name, cases in CASES.items() for case in cases]
)
async def test_an_option_makes_the_job_that_sbatch_makes(
    judge: Judge, name: str, options: str
) -> None:
    if "{other}" in options:
        other = judge.by_sbatch(b"#!/bin/sh\n", "--hold")
        options = options.replace("{other}", str(other.job_id))
    script = f"#!/bin/sh\n#SBATCH {options}\nhostname\n".encode()
    await _same(judge, script, held=name not in _NOT_HELD)


@pytest.mark.parametrize("header", HEADERS)
async def test_a_header_is_read_as_sbatch_reads_it(judge: Judge, header: str) -> None:
    await _same(judge, f"#!/bin/sh\n{header}\nhostname\n".encode())


@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
async def test_a_script_is_taken_or_refused_as_sbatch_does(judge: Judge, script: bytes) -> None:
    await _same(judge, script)


@pytest.mark.parametrize("seed", range(COMBINATIONS))
async def test_options_together_make_the_job_that_sbatch_makes(judge: Judge, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # the same ones in every run
    names = chance.sample(sorted(set(CASES) - _NOT_HELD), k=chance.randint(2, 4))
    cases = [chance.choice(CASES[name]) for name in names]
    lines = [f"#SBATCH {case}" for case in cases if "{other}" not in case]
    await _same(judge, "\n".join(("#!/bin/sh", *lines, "hostname\n")).encode())


def test_every_option_is_compared_or_refused() -> None:
    compared = {option.name for option in OPTIONS if option.treatment is not Treatment.REFUSED}
    assert compared - _WAITS == set(CASES)


def test_the_table_has_exactly_the_options_of_sbatch(slurm: Sandbox) -> None:
    long = {line.strip() for line in slurm.run("sbatch", "--autocomplete=--").splitlines() if line}
    letters = {
        line.strip() for line in slurm.run("sbatch", "--autocomplete=-").splitlines() if line
    }
    endings = {Takes.NOTHING: ("",), Takes.VALUE: ("=",), Takes.PERHAPS: ("=", "")}
    assert long == {f"--{o.name}{end}" for o in OPTIONS for end in endings[o.takes]}
    assert letters == {f"-{o.letter}" for o in OPTIONS if o.letter}
