"""Readers of SlurmJobs, their scripts and options, and of Sylabs' objects."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec

from bridge.domain.request.rules import Policy, Requester, Rule
from slurmjobs.admission import review
from slurmjobs.companions import collecting, volume
from slurmjobs.lifecycle import report
from slurmjobs.objects import slurmjob
from slurmjobs.objects.results import LONGEST_PATH
from slurmjobs.objects.spec import LONGEST_SCRIPT
from slurmjobs.objects.status import ArrayTasks
from slurmjobs.script import body
from slurmjobs.script.options import OPTIONS
from slurmjobs.script.values.form import LONGEST_VALUE, UnreadableValue, ValueForm
from tests.fuzz.grammars import Grammar, framed
from tests.fuzz.readers.reader import (
    USER,
    Reader,
    in_bytes,
)

_NOW = datetime(2026, 11, 27, tzinfo=UTC)
_JOB = slurmjob.OURS.read(b'{"metadata":{"name":"a"},"spec":{"script":"#!/bin/sh"}}')
_RULE = Rule(name="lab", source="x", user="{user}", kinds=frozenset({"SlurmJob"}))
_FORMS = list({id(option.form): option.form for option in OPTIONS if option.form}.values())


def _reviewed(script: str, options: dict[str, str] | None = None) -> object:
    spec = {"script": script, "options": options or {}}
    job = slurmjob.OURS.read(json.dumps({"metadata": {"name": "a"}, "spec": spec}).encode())
    return review.validate(job, Requester(user="mallory"), Policy(rules=(_RULE,)), _NOW)


def _values(text: str) -> object:
    """Read the text as the value of each option, one after the other."""
    return [_value(form, text) for form in _FORMS]


def _value(form: ValueForm[Any], text: str) -> object:
    try:
        return form.read(text)
    except UnreadableValue as error:
        return error


def _named(text: str) -> object:
    return list(report._named(ArrayTasks(total=1, failed=500, failed_tasks=text)))


_SCRIPTS = Grammar(
    (
        *(
            "-H",
            "-x n[1-99999] ",
            "-w a ",
            "--a ",
            "a ",
            "-",
            '"',
            "\\",
            "#",
            " ",
            "\n",
            "1",
            "[",
            ",",
        ),
        *("#SBATCH -H\n", " #SBATCH\n", "#PBS -h\n", "\n#SBATCH -n ", "#BSUB -cwd a\n", "-l a=b,"),
        *(":a=", "é", "\x00", "hetjob "),
    ),
    (
        ("#!/bin/sh\n", "\ntrue\n"),
        ("#!/bin/sh\n#SBATCH -", "\n"),
        ("#!/bin/sh\n#PBS -l nodes=", "\n"),
    ),
)

READERS: tuple[Reader, ...] = (
    Reader(
        name="slurmjobs.admission.review:validate",
        author=USER,
        most_bytes=LONGEST_SCRIPT,
        read=_reviewed,
        grammar=_SCRIPTS,
        steps=30,
        fixed_steps=300_000,  # up to 20 faults with hints
        dear="on a thread of its own (`webhook.apart`)",
        memory=200,
        refusals=(msgspec.ValidationError,),
    ),
    Reader(
        name="slurmjobs.script.options:OPTIONS",
        author=USER,
        most_bytes=LONGEST_VALUE,
        read=_values,
        steps=4 * len(_FORMS),
        dear="all forms, one after the other; a script has 32 KiB of options in all",
        memory=400,
    ),
    Reader(
        name="slurmjobs.script.body:decode",
        author=USER,
        most_bytes=LONGEST_SCRIPT,
        read=in_bytes(body.decode),
    ),
    Reader(
        name="slurmjobs.companions.volume:_parts",
        author=USER,
        most_bytes=LONGEST_PATH,
        read=volume._parts,
    ),
    Reader(
        name="slurmjobs.companions.collecting:_expand_patterns",
        author=USER,
        most_bytes=LONGEST_PATH,
        read=lambda text: collecting._expand_patterns(_JOB, text),
        grammar=framed(("", ""), more=("%j", "%x")),
    ),
    Reader(
        name="slurmjobs.lifecycle.report:_named",
        author=USER,
        most_bytes=report._LONGEST_FAILED,
        read=_named,
        steps=12,
    ),
)
