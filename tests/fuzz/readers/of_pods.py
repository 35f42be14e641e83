"""Readers of what stands on pods, their owners and nodes."""

from bridge.domain.gang import numbering
from bridge.domain.lifecycle import breaker, outcome
from bridge.domain.model import grant
from bridge.domain.model.claims import by_class, profiles
from bridge.domain.model.cores import cpu_list
from bridge.domain.request import attribution, notation, overrides, permit
from bridge.domain.request.rules import Choice, Patterns, Requester, Rule
from bridge.domain.workloads import own_keys, workload
from slurmruntime.model import affinity, nodes
from slurmruntime.values import faults, names, numbers, quantities
from tests.fuzz.grammars import framed, json_of
from tests.fuzz.readers.reader import (
    ADMINISTRATOR,
    ANNOTATIONS,
    KUBERNETES,
    NAME,
    USER,
    Reader,
)

_RULE = Rule(
    name="lab",
    source="x",
    user="{user}",
    kinds=frozenset({"SlurmJob"}),
    partition=Choice(default="p", allowed=Patterns(("a*b*c*", "x?z"))),
    licenses=Patterns(("a*b*c*",)),
)
_FIELDS = sorted(field.name for field in overrides.FIELDS)


def _annotations(text: str) -> object:
    return overrides.parse({f"{names.REQUEST_PREFIX}{name}": text for name in _FIELDS})


def _permitted(text: str) -> object:
    asked = overrides.Overrides(partition=text, qos=text, licenses=text)
    return permit.decide(
        _RULE, permit.Ask(overrides=asked), requester=Requester(user="u"), namespace="n"
    )


def _own_keys(text: str) -> object:
    keys = dict.fromkeys(map(own_keys.PREFIX.__add__, text.split(" ")), "")
    return list(own_keys.faults(keys)), list(overrides.effectless(keys))


def _compared(text: str) -> object:
    requirement = affinity.Requirement(key="a", operator="Gt", values=(text,))
    return affinity._compares(text, requirement)


READERS: tuple[Reader, ...] = (
    Reader(
        name="bridge.domain.request.overrides:parse",
        author=USER,
        most_bytes=4 * notation.MAX_TEXT_BYTES,
        read=_annotations,
        steps=400,  # all fields at once
        memory=400,
    ),
    Reader(
        name="bridge.domain.request.notation:products",
        author=USER,
        most_bytes=notation.MAX_TEXT_BYTES,
        read=notation.products,
        grammar=framed(("", ""), ("(a|b|c|d|e)&", "")),
        steps=200,  # MAX_PRODUCTS terms
        memory=400,
    ),
    Reader(
        name="bridge.domain.request.notation:conjunction",
        author=USER,
        most_bytes=notation.MAX_TEXT_BYTES,
        read=lambda text: notation.conjunction(text, text),
    ),
    Reader(
        name="bridge.domain.request.permit:decide",
        author=USER,
        most_bytes=4 * notation.MAX_TEXT_BYTES,
        read=_permitted,
        refusals=(faults.Refusal,),
        steps=60,
    ),
    Reader(
        name="bridge.domain.workloads.own_keys:faults",
        author=USER,
        most_bytes=ANNOTATIONS,
        read=_own_keys,
        steps=30,
        memory=200,
    ),
    Reader(
        name="bridge.domain.request.attribution:_named",
        author=USER,
        most_bytes=ANNOTATIONS,
        read=attribution._named,
    ),
    Reader(
        name="bridge.domain.workloads.workload:_natural",
        author=USER,
        most_bytes=NAME,
        read=workload._natural,
    ),
    Reader(
        name="bridge.domain.gang.numbering:_by_topology",
        author=KUBERNETES,
        most_bytes=numbering._LONGEST_PLACE,
        read=numbering._by_topology,
    ),
    Reader(
        name="bridge.domain.lifecycle.breaker:evict_until",
        author=ADMINISTRATOR,
        most_bytes=ANNOTATIONS,
        read=breaker.evict_until,
        refusals=(ValueError,),
    ),
    Reader(
        name="bridge.domain.lifecycle.outcome:decode",
        author=USER,
        most_bytes=ANNOTATIONS,
        read=outcome.decode,
        grammar=framed(("", ""), ("exit ", "")),
    ),
    Reader(
        name="bridge.domain.model.grant:decode",
        author=USER,
        most_bytes=ANNOTATIONS,
        read=grant.decode,
        grammar=json_of(('{"identity":{"slurm-bridge":1,"cluster":"', '"},"grant":{}}')),
    ),
    Reader(
        name="bridge.domain.model.claims.profiles:parse",
        author=USER,
        most_bytes=profiles._LONGEST,
        read=profiles.parse,
        grammar=framed(
            ("", ""),
            ('device.driver == "d"', ""),
            more=('device.driver == "d" && ', 'has(device.attributes["d"].a) && '),
        ),
    ),
    Reader(
        name="bridge.domain.model.claims.by_class:spec",
        author=USER,
        most_bytes=NAME,
        read=by_class.spec,
    ),
    Reader(
        name="bridge.domain.model.cores.cpu_list:parse",
        author=KUBERNETES,
        most_bytes=cpu_list.LONGEST,
        read=cpu_list.parse,
    ),
    Reader(
        name="slurmruntime.model.nodes:topology_parts",
        author=KUBERNETES,
        most_bytes=ANNOTATIONS,
        read=nodes.topology_parts,
    ),
    Reader(
        name="slurmruntime.model.affinity:_compares",
        author=USER,
        most_bytes=ANNOTATIONS,
        read=_compared,
    ),
    Reader(
        name="slurmruntime.values.quantities:parse",
        author=USER,
        most_bytes=quantities._LONGEST,
        read=quantities.parse,
        refusals=(ValueError,),
    ),
    Reader(
        name="slurmruntime.values.numbers:integer",
        author=USER,
        most_bytes=ANNOTATIONS,
        read=numbers.integer,
    ),
)
