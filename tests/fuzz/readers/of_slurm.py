"""Readers of what Slurm says: answers of slurmrestd, and the forms in their fields."""

import itertools
import json
from collections.abc import Callable

from bridge.domain.lifecycle import reasons, waiting_reasons
from bridge.domain.model import batch, identities
from bridge.domain.model.devices import gres, room
from bridge.domain.model.identities import UnreadableIdentityError
from bridge.slurm import complete
from bridge.slurm import decode as decoding_of_jobs
from bridge.slurm.allocated import cpus, devices, granted
from bridge.slurm.batch_jobs import arrays, decoding
from slurmclient.calls import answers
from slurmclient.errors import Malformed, SlurmError
from slurmclient.resources import keys
from slurmclient.transport import connection
from slurmclient.watching import listing, states
from slurmclient.wire import reading
from slurmclient.wire.splitting import Splitter
from slurmexporter.jobtable import table
from slurmexporter.readings import job, tres
from slurmexporter.text import rendering
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import LONGEST_ANSWER_BYTES
from slurmruntime.values import hostlist
from tests.fuzz.grammars import framed, json_of
from tests.fuzz.readers.reader import MIB, SLURM, Reader, in_bytes, to_the_end

_JOBS = ('{"jobs":[', "{}]}")
_ENTRIES = ('{"job_id":1},', '{"job_id":"x"},', '{"a":{"b":[]}},', '"job_state":"RUNNING",')
_PIECE = 128
"""Bytes at a time, of a peer that sends as slowly as it can."""


def _answer(
    name: str, read: Callable[[bytes], object], *, steps: float = 12, dear: str = ""
) -> Reader:
    return Reader(
        name=name,
        author=SLURM,
        most_bytes=LONGEST_ANSWER_BYTES,
        read=in_bytes(read),
        grammar=json_of(_JOBS, ('{"job_id":1,"job_resources":{', '"z":1}}'), more=_ENTRIES),
        refusals=(SlurmError, *reading.UNREADABLE),
        steps=steps,
        memory=400,
        dear=dear,
    )


def _field(
    name: str, read: Callable[[str], object], *refusals: type[Exception], dear: str = ""
) -> Reader:
    return Reader(
        name=name,
        author=SLURM,
        most_bytes=MIB,  # of one object in a list that is read in slices
        read=read,
        refusals=refusals,
        grammar=framed(
            ("", ""),
            ("gpu:1(IDX:", ")"),
            ("gpu:", "(S:0)"),
            more=("gpu:1(IDX:0-4095),", "gpu:a:1,", "(S:0-1"),
        ),
        steps=30,
        memory=200,
        dear=dear,
    )


def _split(text: str) -> int:
    """Read a list that comes in small pieces."""
    content = text.encode(errors="surrogatepass")
    splitter = Splitter("job.list", "jobs", longest=MIB)
    return sum(
        len(item)
        for start in range(0, len(content), _PIECE)
        for item in splitter.feed(content[start : start + _PIECE])
    )


def _job(content: bytes) -> object:
    read = reading.lenient(content, wire.Job)
    return decoding_of_jobs.job(read) if isinstance(read, reading.DecodeResult) else read


def _some_tasks(text: str) -> object:
    """Take the first numbers: an array of Slurm's may really have `_MOST_TASKS`."""
    return list(itertools.islice(decoding.task_numbers(text), 1000))


_TASKS = "the tasks of a whole array, as many as MaxArraySize lets it have"
_NODES = "the nodes of a whole job, 100 000 at most"
_NAMES = hostlist.HostlistSize(names=2000, characters=64_000)


def _expanded(text: str) -> str:
    """Take the names of a list that stands for few enough: whoever expands one says how many."""
    return hostlist.compress(hostlist.expand(text, most=_NAMES))


def _task(text: str) -> object:
    fields = {"job_id": 1, "tres_alloc_str": text, "tres_per_node": text, "gres_detail": [text]}
    wired = reading.decode(json.dumps(fields).encode(), wire.Job)
    return granted.task_grant(wired, ())


READERS: tuple[Reader, ...] = (
    _answer("slurmclient.calls.answers:parse", lambda body: answers.parse("x", body, wire.Nodes)),
    _answer(
        "slurmclient.wire.reading:listing",
        lambda body: reading.listing(body, "jobs", wire.Job),
        steps=100,
        dear="a list, not one object; those that may be long are read in slices",
    ),
    _answer("slurmclient.wire.reading:lenient", lambda body: reading.lenient(body, wire.Node)),
    _answer("bridge.slurm.decode:job", _job),
    _answer("bridge.slurm.batch_jobs.decoding:array_of", decoding.array_of),
    _answer("bridge.slurm.allocated.cpus:numbers", lambda body: cpus.numbers(body, 2)),
    Reader(
        name="slurmclient.wire.splitting:Splitter.feed",
        author=SLURM,
        most_bytes=LONGEST_ANSWER_BYTES,
        read=_split,
        grammar=json_of(_JOBS, ('{"jobs":[{"a":"', '"}]}'), ('{"jobs":[{', ""), more=_ENTRIES),
        refusals=(Malformed,),
        dear="a list, which comes in pieces of 64 KiB at most; the loop turns after each",
    ),
    _field("bridge.domain.lifecycle.reasons:condition_reason", reasons.condition_reason),
    _field("bridge.domain.lifecycle.waiting_reasons:explain", waiting_reasons.explain),
    _field("bridge.domain.model.identities:decode", identities.decode, UnreadableIdentityError),
    _field("bridge.domain.model.batch:decode", batch.decode, UnreadableIdentityError),
    _field("bridge.domain.model.devices.gres:counted", gres.counted),
    _field("bridge.domain.model.devices.room:_read", room._read),
    _field("bridge.slurm.allocated.devices:indexes", to_the_end(devices.indexes)),
    _field("bridge.slurm.allocated.granted:task_grant", _task),
    _field("bridge.slurm.allocated.granted:_gres", granted._gres),
    _field("bridge.slurm.allocated.granted:_allocated_mib", granted._allocated_mib),
    _field(
        "bridge.slurm.batch_jobs.arrays:task_states",
        lambda text: arrays.task_states([text, f"{text}:RUNNING"]),
    ),
    _field("bridge.slurm.batch_jobs.decoding:task_numbers", _some_tasks, dear=_TASKS),
    _field("slurmclient.resources.keys:mark_of", keys.mark_of),
    _field("slurmclient.watching.listing:numbers", listing.numbers),
    _field("slurmclient.watching.states:component", states.component),
    _field("slurmexporter.jobtable.table:_base", table._base),
    _field("slurmexporter.readings.job:task_count", job.task_count, dear=_TASKS),
    _field("slurmexporter.readings.tres:amounts", tres.amounts),
    _field("slurmexporter.readings.tres:gres", tres.gres),
    _field("slurmexporter.text.rendering:escape", rendering.escape),
    Reader(
        name="bridge.slurm.complete:return_code",
        author=SLURM,
        most_bytes=complete.LONGEST_REPLY,
        read=in_bytes(complete.return_code),
        refusals=(Malformed,),
    ),
    Reader(
        name="slurmclient.transport.connection:_end",
        author=SLURM,
        most_bytes=LONGEST_ANSWER_BYTES,
        read=in_bytes(connection._end),
        grammar=framed(
            ("", ""),
            ("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ", "\r\n\r\n"),
            more=("a:b\r\n",),
        ),
        dear="the head of an answer, whose length the HTTP library bounds",
    ),
    _field("slurmruntime.values.hostlist:measure", hostlist.measure, ValueError, dear=_NODES),
    Reader(
        name="slurmruntime.values.hostlist:expand",
        author=SLURM,
        most_bytes=MIB,
        read=_expanded,
        grammar=framed(("", ""), ("a[", "]"), more=("a[1-9],",)),
        refusals=(ValueError,),
        fixed_steps=10 * _NAMES.names,
        steps=60,
        memory=400,
    ),
)
