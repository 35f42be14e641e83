"""Render slurm.conf from a Controller and the objects that belong to it."""

from collections.abc import Iterator, Mapping
from typing import Final

from slurmoperator.configuration import checking, devices, lines, profiles
from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.configuration.lines import ConfLine, Setting
from slurmoperator.configuration.parameters import SLURM_CONF, ParameterKind
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import is_on_nodes
from slurmruntime.values.faults import Fault

ETC: Final = "/etc/slurm"
LOGS: Final = "/var/log/slurm"
STATE: Final = "/var/spool/slurmctld"
SLURMCTLD_PORT: Final = 6817
SLURMD_PORT: Final = 6818
SLURMDBD_PORT: Final = 6819
LEAST_MAX_NODES: Final = 1024
_MOST_NODES: Final = 65_533

_OURS_ALONE: Final = {
    "clustername": "it is spec.clusterName",
    "slurmuser": "the images run slurmctld as this user",
    "slurmctldhost": "it names the pods that run slurmctld",
    "slurmctldport": "the Service and the probes use it",
    "slurmctldaddr": "it is the Service",
    "statesavelocation": "it is where the volume is mounted",
    "slurmdport": "the probes of the workers use it",
    "slurmdspooldir": "it is where the workers have space",
    "authtype": "the pods have only its key",
    "credtype": "the pods have only its key",
    "accountingstoragetype": "it follows from spec.accountingRef",
    "accountingstoragehost": "it follows from spec.accountingRef",
    "accountingstorageport": "it follows from spec.accountingRef",
    "metricstype": "it follows from spec.metrics.enabled",
}
"""What `extraConf` must not set because the pods depend on it, and why."""

_LISTS: Final = frozenset({"slurmctldparameters", "authinfo", "authaltparameters", "grestypes"})
"""Parameters with lists, to which `extraConf` adds."""

_NAMED: Final = frozenset({"partitionname", "nodeset", "nodename"})
"""Kinds of lines that may appear once for each name."""


def text(inputs: ConfigurationInputs) -> str:
    """Return the file."""
    if inputs.controller.spec.external:
        return _render(_external(inputs))
    extra = lines.read(inputs.controller.spec.extra_conf)
    theirs = {
        setting.key.lower(): setting
        for line in extra
        for setting in line.settings
        if not _is_repeated(line)
    }
    base = [
        Setting(setting.key, _merge(setting, theirs.get(setting.key.lower())))
        for setting in _base(inputs)
    ]
    ours = {setting.key.lower() for setting in base}
    rest = "".join(f"{remainder}\n" for line in extra if (remainder := _without(line, ours)))
    # Before the user's lines: a partition DEFAULT among them applies to what follows.
    obsolete = "".join(f"{line}\n" for line in inputs.obsolete_partitions)
    nodes = "".join(
        f"#{node_line(node_set)}\n"
        for node_set in inputs.sorted_node_sets
        if node_set.spec.extra_conf.strip()
    )
    return _render(base) + "".join(_sets(inputs)) + nodes + obsolete + rest


def node_line(node_set: NodeSetObject) -> str:
    """Return a line for a node as the workers register it, under a name that none can have: a comment in slurm.conf, uncommented where the file is tried."""
    conf = node_set.node_conf.replace("\\", r"\\").replace("#", r"\#")
    return f"NodeName={node_set.slurm_name}_any State=FUTURE {conf}"


def faults(inputs: ConfigurationInputs) -> Iterator[Fault]:
    """Find faults in `extraConf` and in the lines of NodeSets."""
    extra = inputs.controller.spec.extra_conf
    yield from checking.check("slurm.conf", extra, "spec.extraConf")
    base = {setting.key.lower(): setting for setting in _base(inputs)}
    for line in lines.read(extra):
        for setting in line.settings[:1] if _is_repeated(line) else line.settings:
            at, key = f"spec.extraConf line {line.number}", setting.key.lower()
            if why := _OURS_ALONE.get(key):
                yield Fault(at, f"{setting.key} cannot be set here: {why}")
            elif key in _LISTS and key in base:
                yield from _contradictions(base[key], setting, at)
            elif key == "slurmduser" and setting.value not in ("root", "0"):
                yield Fault(at, "SlurmdUser: expected root, so that jobs run as their users")
            elif key == "maxnodecount":
                yield from _room_faults(inputs, setting, at)
    yield from _duplicates(inputs)
    yield from misread_lines("slurm.conf", _render(_base(inputs)) + "".join(_sets(inputs)))
    yield from _partition_faults(inputs)


def misread_lines(file: str, content: str) -> Iterator[Fault]:
    """Find lines that a daemon would not read as we write them: one could swallow the next."""
    for line in content.split("\n"):
        if line and not lines.is_read_as_written(line):
            message = f"Slurm would not read {line[:80]!r} as written: expected no #, no quotation mark, and no \\ at the end"
            yield Fault(file, message)


def _base(inputs: ConfigurationInputs) -> Iterator[Setting]:
    controller = inputs.controller
    name, namespace = controller.metadata.name, controller.metadata.namespace
    pod, service = f"{name}-controller", f"{name}-controller.{namespace}"
    yield Setting("ClusterName", controller.cluster_name)
    yield Setting("SlurmUser", "slurm")
    for index in range(controller.replicas):
        host = f"{pod}-{index}({pod}-{index}.{pod}-internal.{namespace})"
        yield Setting("SlurmctldHost", host)
    yield Setting("SlurmctldPort", str(SLURMCTLD_PORT))
    if controller.replicas == 1:
        yield Setting("SlurmctldAddr", service)
    yield Setting("StateSaveLocation", f"{STATE}/{controller.cluster_name}")
    yield Setting("SlurmdUser", "root")
    yield Setting("SlurmdPort", str(SLURMD_PORT))
    yield Setting("SlurmdSpoolDir", "/var/spool/slurmd")
    yield Setting("MaxNodeCount", str(_max_nodes(inputs)))
    # A worker's pod may come back on a machine that booted in between: Slurm takes that for an unexpected reboot.
    yield Setting("ReturnToService", "2")
    yield Setting("SlurmctldLogFile", f"{LOGS}/slurmctld.log")
    yield Setting("SlurmSchedLogFile", f"{LOGS}/slurmctld.log")
    yield Setting("SlurmdLogFile", f"{LOGS}/slurmd.log")
    yield from authentication(has_jwks=controller.spec.jwks_key_ref is not None)
    yield Setting("SlurmctldParameters", "enable_configless,reconfig_on_restart")
    if controller.spec.metrics and controller.spec.metrics.enabled:
        yield Setting("MetricsType", "metrics/openmetrics")
    yield from _accounting(inputs)
    if kinds := devices.kinds(inputs.sorted_node_sets):
        yield Setting("GresTypes", ",".join(kinds))
    yield from profiles.settings(inputs)
    yield from _scripts(inputs)


def authentication(*, has_jwks: bool) -> Iterator[Setting]:
    """Yield the settings on which slurmctld and slurmdbd must agree."""
    jwks = f",jwks={ETC}/jwks.json" if has_jwks else ""
    yield Setting("AuthType", "auth/slurm")
    yield Setting("CredType", "cred/slurm")
    yield Setting("AuthAltTypes", "auth/jwt")
    yield Setting("AuthAltParameters", f"jwt_key={ETC}/jwt.key{jwks}")
    yield Setting("AuthInfo", "use_client_ids")


def _accounting(inputs: ConfigurationInputs) -> Iterator[Setting]:
    accounting = inputs.accounting
    if accounting is None:
        yield Setting("AccountingStorageType", "accounting_storage/none")
        return
    yield Setting("AccountingStorageType", "accounting_storage/slurmdbd")
    address = accounting.spec.external_config if accounting.spec.external else None
    if address is None:
        yield Setting("AccountingStorageHost", f"{accounting.metadata.name}-accounting")
        yield Setting("AccountingStoragePort", str(SLURMDBD_PORT))
    else:
        yield Setting("AccountingStorageHost", address.host)
        yield Setting("AccountingStoragePort", str(address.port))


def _scripts(inputs: ConfigurationInputs) -> Iterator[Setting]:
    """Yield the scripts. Configless sends only scripts without a path to the workers."""
    for key, reference, folder in (
        ("PrologSlurmctld", "prolog_slurmctld_script_refs", f"{ETC}/"),
        ("EpilogSlurmctld", "epilog_slurmctld_script_refs", f"{ETC}/"),
        ("Prolog", "prolog_script_refs", ""),
        ("Epilog", "epilog_script_refs", ""),
    ):
        for file in sorted(inputs.files(reference)):
            yield Setting(key, folder + file)


def _sets(inputs: ConfigurationInputs) -> Iterator[str]:
    for node_set in inputs.sorted_node_sets:
        name, partition = node_set.slurm_name, node_set.spec.partition
        yield f"NodeSet={name} Feature={name}\n"
        if partition and partition.enabled:
            words = ("PartitionName=" + name, f"Nodes={name}", partition.config or "")
            yield " ".join(filter(None, words)) + "\n"


def _external(inputs: ConfigurationInputs) -> Iterator[Setting]:
    address = inputs.controller.spec.external_config
    yield Setting("ClusterName", inputs.controller.cluster_name)
    yield Setting("SlurmUser", "slurm")
    if address is not None:
        yield Setting("SlurmctldHost", address.host)
        yield Setting("SlurmctldPort", str(address.port))
    yield Setting("AuthType", "auth/slurm")
    yield Setting("CredType", "cred/slurm")
    yield Setting("AuthAltTypes", "auth/jwt")
    yield from _accounting(inputs)


def _max_nodes(inputs: ConfigurationInputs) -> int:
    """Return room for twice the workers: raising the limit restarts nothing, but a full table refuses workers."""
    workers = sum(map(_workers, inputs.node_sets))
    limit = LEAST_MAX_NODES
    while limit < 2 * workers:
        limit *= 2
    return min(limit, _MOST_NODES)


def _workers(node_set: NodeSetObject) -> int:
    """Return the desired number of workers; from the status where the Kubernetes nodes decide it."""
    if is_on_nodes(node_set):
        return max(node_set.status.desired, node_set.status.replicas)
    return node_set.spec.replicas


def _room_faults(inputs: ConfigurationInputs, setting: Setting, at: str) -> Iterator[Fault]:
    """Find a limit below the number of workers: Slurm drops a worker beyond it, with its jobs."""
    workers = sum(map(_workers, inputs.node_sets))
    if setting.value.isdecimal() and int(setting.value[:9]) < workers:
        message = f"{setting.key}={setting.value[:80]}: expected room for the {workers} workers of all NodeSets"
        yield Fault(at, message)


def _merge(ours: Setting, theirs: Setting | None) -> str:
    """Return the user's value, ours if there is none, or both if it is a list."""
    if theirs is None:
        return ours.value
    if ours.key.lower() not in _LISTS:
        return theirs.value
    return ",".join(dict.fromkeys((*lines.words(ours.value), *lines.words(theirs.value))))


def _without(line: ConfLine, ours: set[str]) -> str:
    if _is_repeated(line):
        return line.text
    remaining = [setting for setting in line.settings if setting.key.lower() not in ours]
    if len(remaining) == len(line.settings):
        return line.text
    return _render(remaining).replace("\n", " ").strip()


def _is_repeated(line: ConfLine) -> bool:
    known = SLURM_CONF.get(line.settings[0].key.lower()) if line.settings else None
    return known is not None and known.kind is ParameterKind.REPEATED


def _render(settings: Iterator[Setting] | list[Setting]) -> str:
    return "".join(f"{setting.key}={lines.quoted(setting.value)}\n" for setting in settings)


def _contradictions(ours: Setting, theirs: Setting, at: str) -> Iterator[Fault]:
    by_name: Mapping[str, str] = {
        item.partition("=")[0].lower(): item for item in lines.words(ours.value)
    }
    for item in lines.words(theirs.value):
        required = by_name.get(item.partition("=")[0].lower())
        if required is not None and "=" in required and required != item:
            yield Fault(at, f"{theirs.key}: {item} contradicts {required}, which the pods need")


def _partition_faults(inputs: ConfigurationInputs) -> Iterator[Fault]:
    names = {node_set.slurm_name for node_set in inputs.node_sets}
    owners: dict[str, str] = {}
    for node_set in inputs.sorted_node_sets:
        partition, label = node_set.spec.partition, f"NodeSet {node_set.metadata.name}"
        if partition is None or not partition.enabled:
            continue
        owners[node_set.slurm_name] = label
        at, config = f"{label} spec.partition.config", partition.config or ""
        line_text = f"PartitionName={node_set.slurm_name} {config}"
        for fault in checking.check("slurm.conf", line_text, at):
            yield Fault(at, fault.message)
        if any(setting.key.lower() == "nodes" for setting in lines.settings(config)):
            text = "Nodes is always the NodeSet itself: add another partition to extraConf"
            yield Fault(at, text)
    extra = lines.read(inputs.controller.spec.extra_conf)
    known = names | {line.settings[0].value for line in extra if _begins(line, "nodeset")}
    has_nodes = any(_begins(line, "nodename") for line in extra)
    for line in extra:
        if not _begins(line, "partitionname"):
            continue
        at = f"spec.extraConf line {line.number}"
        if owner := owners.get(line.settings[0].value):
            yield Fault(at, f"{owner} already defines partition {line.settings[0].value}")
        for setting in line.settings[1:]:
            if setting.key.lower() == "nodes" and not has_nodes:
                yield from _unknown_nodes(setting.value, known, at)


def _duplicates(inputs: ConfigurationInputs) -> Iterator[Fault]:
    """Find names that appear twice, at which slurmctld exits; DEFAULT is no name, it applies to the lines after it."""
    seen = {
        ("nodeset", node_set.slurm_name): f"NodeSet {node_set.metadata.name}"
        for node_set in inputs.node_sets
    }
    for line in lines.read(inputs.controller.spec.extra_conf):
        first = line.settings[0] if line.settings else None
        if first is None or first.key.lower() not in _NAMED or first.value.upper() == "DEFAULT":
            continue
        before = seen.setdefault((first.key.lower(), first.value), f"line {line.number}")
        if before != f"line {line.number}":
            message = f"{first.key}={first.value[:80]} is already defined in {before}: expected another name"
            yield Fault(f"spec.extraConf line {line.number}", message)


def _unknown_nodes(value: str, known: set[str], at: str) -> Iterator[Fault]:
    for word in lines.words(value):
        if word.upper() != "ALL" and word not in known:
            names = ", ".join(sorted(known)) or "none"
            yield Fault(at, f"Nodes={word}: there is no such NodeSet; known NodeSets: {names}")


def _begins(line: ConfLine, key: str) -> bool:
    return bool(line.settings) and line.settings[0].key.lower() == key
