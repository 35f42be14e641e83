"""A tenant who wants others' pods to wait: floods, oversized objects, dear scripts, and changes without end."""

import itertools
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from benchmarks import odd_things
from sandbox.api import Api
from slurmruntime.values import names
from tests.fuzz.readers.registry import READERS
from tests.integration.worlds import container
from tests.make import oversized
from tests.make.dear_scripts import DEAREST
from tests.soak.flood import Flood
from tests.soak.hostile.grounds import Grounds, as_mallory, at_once

_SCRIPTS = next(r.grammar for r in READERS if r.name == "slurmjobs.admission.review:validate")
_LENGTHS = (64 * 2**10, 2**20)
_SCRIPTS_AT_A_TIME = 6
_PODS = 60
"""In a wave of a flood."""
_CHURNED_FOR_S = 4.0
_WAITING = 20
"""Pods whose labels and annotations change."""
_NOTE = "x" * 20_000
_LARGE = {"object_bytes": 1_200_000, "annotation_bytes": 250_000, "label_bytes": 200_000}
"""Nearly as much as etcd takes of an object, and as the API server takes of annotations."""
_CAPS = {"gang_size": 10**6, "annotations": 3000, "affinity_terms": 2000, "tolerations": 5000}
_GATE = {"name": "example.test/later"}


def attacks(grounds: Grounds) -> Mapping[str, Callable[[], None]]:
    """By what a person calls them."""
    tenant = _Tenant(grounds, as_mallory(grounds.sandbox))
    return {
        "floods of hopeless pods": tenant.flood,
        "odd pods, gangs far beyond the caps": tenant.create_odd,
        "pods at the API server's limit of size": tenant.create_large,
        "SlurmJobs with the worst scripts": tenant.create_scripts,
        "the dearest SlurmJobs that are allowed": tenant.create_dearest,
        "the worst scripts in ConfigMaps": tenant.create_scripts_elsewhere,
        "pods created and deleted at once": tenant.churn,
        "labels and annotations that change without end": tenant.change,
    }


class _Tenant:
    def __init__(self, grounds: Grounds, api: Api) -> None:
        self._grounds = grounds
        self._dice = grounds.dice
        self._api = api
        self._flood = Flood(
            grounds.sandbox, grounds.namespace, grounds.sandbox.user_kubeconfig("mallory")
        )
        self._numbers = itertools.count()

    def flood(self) -> None:
        self._flood.come(self._dice, _PODS)
        time.sleep(self._dice.uniform(1, 4))
        self._flood.go()

    def create_odd(self) -> None:
        bodies = [self._merged(odd) for odd in odd_things.NEW_PODS.values()]
        bodies += [self._merged(oversized.having(cap, most)) for cap, most in _CAPS.items()]
        at_once([partial(self._api.create, self._grounds.pods, body) for body in bodies])
        time.sleep(self._dice.uniform(1, 4))
        self._flood.go()

    def create_large(self) -> None:
        bodies = [self._merged(oversized.having(cap, most)) for cap, most in _LARGE.items()]
        at_once([partial(self._api.create, self._grounds.pods, body) for body in bodies])

    def create_scripts(self) -> None:
        texts = list(_SCRIPTS.worst(self._dice.choice(_LENGTHS)))
        self._create_jobs(self._dice.sample(texts, _SCRIPTS_AT_A_TIME))

    def create_dearest(self) -> None:
        self._create_jobs([DEAREST] * 4 * _SCRIPTS_AT_A_TIME)

    def _create_jobs(self, scripts: list[str]) -> None:
        bodies = [
            self._slurm_job({"script": script, "options": {"hold": True}}) for script in scripts
        ]
        at_once([partial(self._api.create, self._grounds.slurm_jobs, body) for body in bodies])
        self._api.delete(self._grounds.slurm_jobs)

    def create_scripts_elsewhere(self) -> None:
        """No webhook sees these."""
        text = self._dice.choice(list(_SCRIPTS.worst(900 * 2**10)))
        scripts = {"metadata": {"name": self._name()}, "data": {"train": text}}
        name = scripts["metadata"]["name"]
        path = f"{self._grounds.config_maps}/{name}"
        self._api.create(self._grounds.config_maps, scripts)
        source = {"configMapKeyRef": {"name": name, "key": "train"}}
        try:
            body = self._slurm_job({"scriptFrom": source, "options": {"hold": True}})
            self._api.create(self._grounds.slurm_jobs, body)
            time.sleep(self._dice.uniform(2, 5))
            self._api.delete(self._grounds.slurm_jobs)
        finally:
            self._api.delete(path)

    def churn(self) -> None:
        end_s = time.monotonic() + _CHURNED_FOR_S

        def come_and_go() -> None:
            while time.monotonic() < end_s:
                body = self._merged({})
                self._api.create(self._grounds.pods, body)
                path = f"{self._grounds.pods}/{body['metadata']['name']}"
                self._api.delete(path, gracePeriodSeconds=0)

        at_once([come_and_go] * 4)
        self._flood.go()

    def change(self) -> None:
        """Of pods that wait for a gate of others, while Slurm holds none of them."""
        bodies = [self._merged({"spec": {"schedulingGates": [_GATE]}}) for _ in range(_WAITING)]
        at_once([partial(self._api.create, self._grounds.pods, body) for body in bodies])
        paths = [f"{self._grounds.pods}/{body['metadata']['name']}" for body in bodies]
        end_s = time.monotonic() + _CHURNED_FOR_S

        def change_on() -> None:
            for number in itertools.count():
                if time.monotonic() > end_s:
                    return
                changed = {
                    "labels": {
                        "example.test/turn": str(number),
                        names.POD_GROUP_LABEL: f"g{number}",
                    },
                    "annotations": {"example.test/note": f"{_NOTE}{number}"},
                }
                kept = {**changed, "labels": {"example.test/turn": str(number)}}
                path = paths[number % len(paths)]
                self._api.patch(path, {"metadata": kept if number % 2 else changed})

        at_once([change_on] * 3)
        self._flood.go()

    def _name(self) -> str:
        return f"m-{next(self._numbers)}"

    def _merged(self, more: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """An ordinary pod with so much more."""
        spec = {"containers": [container()], "restartPolicy": "Never", **more.get("spec", {})}
        spec["containers"] = [{**container(), **one} for one in spec["containers"]]
        return {"metadata": {**more.get("metadata", {}), "name": self._name()}, "spec": spec}

    def _slurm_job(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": "slurm-bridge.dev/v1alpha1",
            "kind": "SlurmJob",
            "metadata": {"name": self._name()},
            "spec": dict(spec),
        }
