"""Renders a Controller: Slurm's files, slurmctld, and the Services for it and its workers."""

from collections.abc import Iterator, Mapping
from typing import Final

from slurmoperator.configuration import changes
from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.configuration.slurm_conf import ETC, SLURMCTLD_PORT, SLURMD_PORT, STATE
from slurmoperator.objects import names
from slurmoperator.objects.controller import ControllerObject, StatePersistence
from slurmoperator.objects.labels import APP_LABEL, CLUSTER_LABEL
from slurmoperator.rendering import pods, trying
from slurmoperator.rendering.access import monitoring, network, services
from slurmoperator.rendering.body import (
    BodyOwner,
    files_annotations,
    owned_body,
    restart_digest,
)
from slurmoperator.rendering.site import (
    SLURM_USER_ID,
    ControlSite,
    configuration_name,
    wanted_configuration_name,
    workers_service,
)
from slurmruntime.model.objects import JsonDict, JsonObject
from slurmruntime.values.faults import Fault, require_none

_APP: Final = "slurmctld"
_STATE_VOLUME: Final = "statesave"
_SOCKET_MOUNT: Final = {"name": "slurm-authsocket", "mountPath": "/run/slurmctld"}
RECONFIGURE: Final = "reconfigure"
"""Name of the container that tries new files and installs them."""
_MODE: Final = 0o610
_LONGEST_TRIALS_S: Final = 3600
"""How long a new cluster waits for files that slurmctld accepts; until then, someone has to fix those that it refuses."""
_WAITS_FOR_SLURMDBD: Final = f"""\
trap 'exit 1' TERM
said() {{ sed -n "s/^$1=//p" {ETC}/slurm.conf; }}
port=$(said AccountingStoragePort)
echo "slurmctld starts for the first time, which takes slurmdbd: waiting for it at $(said AccountingStorageHost):$port"
while [ ! -e "$STATE/last_tres" ]; do
  for host in $(said AccountingStorageHost) $(said AccountingStorageBackupHost); do
    timeout 5 bash -c ': < "/dev/tcp/$0/$1"' "$host" "$port" 2> /dev/null && exit 0
  done
  sleep 2 & wait $!
done
"""
"""Without slurmdbd, slurmctld gives up unless its state has slurmdbd's last answer: `last_tres`
(src/slurmctld/controller.c). Once it has, slurmctld runs without slurmdbd and must not wait."""


def controller_bodies(
    controller: ControllerObject,
    files: ConfigurationSet,
    site: ControlSite,
    *,
    wanted: ConfigurationSet | None = None,
    is_proven: bool = False,
    key_step: int = 0,
) -> tuple[JsonObject, ...]:
    """Return all bodies of a Controller.

    Args:
        files: the Slurm configuration that is in force.
        wanted: the desired configuration, checked; None if it is `files`.
        is_proven: whether a slurmctld has served with `files`.
        key_step: rotation step of the daemons' key; see `slurmoperator.keys.rings`.

    Raises:
        Refusal: with everything that is wrong with it.
    """
    require_none(_faults(controller))
    owner = BodyOwner(kind="Controller", metadata=controller.metadata, app=_APP)
    name = controller.metadata.name
    workers = {APP_LABEL: "slurmd", CLUSTER_LABEL: name}
    shared = (
        _config_map(owner, configuration_name(name), files, files.files, is_proven=is_proven),
        services.headless(owner, workers_service(name), workers, app="slurmd", port=SLURMD_PORT),
        *network.network_policy(
            owner, workers_service(name), site.network, app="slurmd", selecting=workers
        ),
    )
    if controller.spec.external:
        return shared
    pod, wanted = f"{name}-controller", wanted or files
    tried = {**wanted.files, trying.WRITE_FILE: wanted.write}
    return (
        *shared,
        _config_map(owner, wanted_configuration_name(name), wanted, tried),
        services.for_clients(
            owner, pod, SLURMCTLD_PORT, controller.spec.service, also=SLURMCTLD_PORT
        ),
        *network.network_policy(owner, pod, site.network),
        services.headless(owner, f"{pod}-internal", owner.selecting, app=_APP, port=SLURMCTLD_PORT),
        _stateful_set(
            controller,
            owner,
            site,
            restart_digest(changes.restart_digest(files.files)),
            key_step=key_step,
        ),
        *monitoring.service_monitor(owner, pod, controller.spec.metrics),
    )


def _config_map(
    owner: BodyOwner,
    name: str,
    files: ConfigurationSet,
    data: Mapping[str, str],
    *,
    is_proven: bool = False,
) -> JsonDict:
    annotations = files_annotations(files, is_proven=is_proven)
    parts = {"data": dict(sorted(data.items()))}
    return owned_body(owner, "ConfigMap", name, annotations=annotations, parts=parts)


def _faults(controller: ControllerObject) -> Iterator[Fault]:
    yield from names.faults("Controller", controller.metadata.name)
    if controller.spec.external:
        return
    yield from services.faults(controller.spec.service)
    yield from pods.key_faults(controller.spec)


def _stateful_set(
    controller: ControllerObject,
    owner: BodyOwner,
    site: ControlSite,
    restarted_for: str,
    *,
    key_step: int,
) -> JsonDict:
    pod = f"{controller.metadata.name}-controller"
    state = controller.spec.persistence or StatePersistence()
    has_claim = state.enabled and not state.existing_claim
    return pods.workload(
        owner,
        "StatefulSet",
        pod,
        _specification(controller, owner, site, state, key_step=key_step),
        controller.spec.template,
        site=site,
        restarted_for=restarted_for,
        replicas=controller.replicas,
        serviceName=f"{pod}-internal",
        podManagementPolicy="Parallel",
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"},
        **({"volumeClaimTemplates": [_claim(state)]} if has_claim else {}),
    )


def _specification(
    controller: ControllerObject,
    owner: BodyOwner,
    site: ControlSite,
    state: StatePersistence,
    *,
    key_step: int,
) -> JsonDict:
    spec = controller.spec
    image = str((spec.slurmctld or {}).get("image") or site.images.slurmctld)
    name = controller.metadata.name
    volumes = [
        {"name": pods.ETC_VOLUME, **pods.MEMORY},
        _files(pods.WANTED_VOLUME, wanted_configuration_name(name)),
        _files(pods.PROVEN_VOLUME, configuration_name(name)),
        pods.projected(pods.KEYS_VOLUME, _MODE, pods.daemon_keys(spec, key_step)),
        dict(pods.LOG),
        {"name": pods.RUN_MOUNT["name"], **pods.MEMORY},
        {"name": _SOCKET_MOUNT["name"], "emptyDir": {}},
    ]
    if not state.enabled:
        volumes.append({"name": _STATE_VOLUME, "emptyDir": {}})
    elif state.existing_claim:
        claim = {"claimName": state.existing_claim}
        volumes.append({"name": _STATE_VOLUME, "persistentVolumeClaim": claim})
    return {
        **pods.NO_TOKEN,
        "securityContext": {**pods.AS_SLURM, "fsGroup": SLURM_USER_ID},
        "initContainers": [
            _reconfigure(controller, image),
            *([] if spec.accounting_ref is None else [_slurmdbd_waiter(controller, image)]),
            pods.log_reader(image, "slurmctld.log", spec.logfile),
        ],
        "containers": [_slurmctld(controller, image)],
        "volumes": volumes,
        **({"affinity": pods.one_per_node(owner.selecting)} if controller.replicas > 1 else {}),
    }


def _files(volume: str, config_map: str) -> JsonDict:
    return pods.projected(volume, _MODE, [{"configMap": {"name": config_map}}])


def _slurmctld(controller: ControllerObject, image: str) -> JsonDict:
    # A standby never becomes ready by /readyz, and a StatefulSet proceeds only when its pods are ready.
    ready = "/readyz" if controller.replicas == 1 else "/livez"
    ours = {
        "image": image,
        "ports": [{"name": _APP, "containerPort": SLURMCTLD_PORT, "protocol": "TCP"}],
        **pods.probes(pods.http_probe("/livez", _APP), pods.http_probe(ready, _APP)),
        "securityContext": dict(pods.AS_SLURM),
        "volumeMounts": [
            dict(pods.ETC_MOUNT),
            dict(pods.KEYS_MOUNT),
            dict(pods.RUN_MOUNT),
            _state_mount(controller),
            dict(_SOCKET_MOUNT),
            dict(pods.LOG_MOUNT),
        ],
    }
    return pods.container(_APP, ours, controller.spec.slurmctld)


def _state_mount(controller: ControllerObject) -> JsonDict:
    return {"name": _STATE_VOLUME, "mountPath": f"{STATE}/{controller.cluster_name}"}


def _slurmdbd_waiter(controller: ControllerObject, image: str) -> JsonDict:
    state = _state_mount(controller)
    return {
        "name": "slurmdbd",
        "image": image,
        "command": ["bash", "-c", _WAITS_FOR_SLURMDBD],
        "env": [{"name": "STATE", "value": state["mountPath"]}],
        "volumeMounts": [dict(pods.ETC_MOUNT), {**state, "readOnly": True}],
    }


def _reconfigure(controller: ControllerObject, image: str) -> JsonDict:
    environment = trying.ENVIRONMENT.items()
    is_put = {"exec": {"command": ["test", "-s", f"{trying.ENVIRONMENT['RUN']}/put"]}}
    ours = {
        "image": image,
        "command": ["bash", "-c", trying.SCRIPT],
        "env": [{"name": name, "value": value} for name, value in environment],
        "restartPolicy": "Always",
        # slurmctld starts once there are files that it accepts.
        "startupProbe": {**is_put, "failureThreshold": _LONGEST_TRIALS_S, "periodSeconds": 1},
        "volumeMounts": [*pods.trial_mounts(), dict(_SOCKET_MOUNT)],
    }
    return pods.container(RECONFIGURE, ours, controller.spec.reconfigure)


def _claim(state: StatePersistence) -> JsonDict:
    spec = {
        "accessModes": list(state.access_modes) or ["ReadWriteOnce"],
        "resources": state.resources or {"requests": {"storage": "4Gi"}},
        "selector": state.selector,
        "dataSource": state.data_source,
        "dataSourceRef": state.data_source_ref,
        "storageClassName": state.storage_class_name,
        "volumeAttributesClassName": state.volume_attributes_class_name,
        "volumeMode": state.volume_mode,
        "volumeName": state.volume_name,
    }
    return {
        "metadata": {"name": _STATE_VOLUME},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }
