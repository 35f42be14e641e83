"""slurm.conf, from a Controller and what belongs to it."""

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
    "slurmdspooldir": "it is where the workers have room",
    "authtype": "only its key is in the pods",
    "credtype": "only its key is in the pods",
    "accountingstoragetype": "it follows from spec.accountingRef",
    "accountingstoragehost": "it follows from spec.accountingRef",
    "accountingstorageport": "it follows from spec.accountingRef",
    "metricstype": "it follows from spec.metrics.enabled",
}
"""What `extraConf` must not say, because the pods depend on it, and why."""

_LISTS: Final = frozenset({"slurmctldparameters", "authinfo", "authaltparameters", "grestypes"})
"""Lists to which `extraConf` adds."""

_NAMED: Final = frozenset({"partitionname", "nodeset", "nodename"})
"""Lines of which there may be one for each name."""


def text(inputs: ConfigurationInputs) -> str:
    """Return the file."""
    if inputs.controller.spec.external:
        return _written(_external(inputs))
    extra = tuple(lines.read(inputs.controller.spec.extra_conf))
    said = {
        setting.key.lower(): setting
        for line in extra
        for setting in line.settings
        if not _is_repeated(line)
    }
    base = [Setting(each.key, _with(each, said.get(each.key.lower()))) for each in _base(inputs)]
    ours = {each.key.lower() for each in base}
    rest = "".join(f"{kept}\n" for line in extra if (kept := _kept(line, ours)))
    # Before the user's lines: a partition DEFAULT among them holds for what follows.
    kept = "".join(f"{kept_partition}\n" for kept_partition in inputs.kept_partitions)
    nodes = "".join(
        f"#{node_line(each)}\n" for each in inputs.sorted_node_sets if each.spec.extra_conf.strip()
    )
    return _written(base) + "".join(_sets(inputs)) + nodes + kept + rest


def node_line(node_set: NodeSetObject) -> str:
    """Return a line with a node such as its workers register: a comment in the file, and no comment where the file is tried.

    No worker can have this name, nor can it be one of Kubernetes.
    """
    conf = node_set.node_conf.replace("\\", r"\\").replace("#", r"\#")
    return f"NodeName={node_set.slurm_name}_any State=FUTURE {conf}"


def faults(inputs: ConfigurationInputs) -> Iterator[Fault]:
    """Find what is wrong in `extraConf` and in the lines of NodeSets."""
    extra = inputs.controller.spec.extra_conf
    yield from checking.check("slurm.conf", extra, "spec.extraConf")
    base = {each.key.lower(): each for each in _base(inputs)}
    for line in lines.read(extra):
        for setting in line.settings[:1] if _is_repeated(line) else line.settings:
            at, key = f"spec.extraConf line {line.number}", setting.key.lower()
            if why := _OURS_ALONE.get(key):
                yield Fault(at, f"{setting.key} is not yours to set: {why}")
            elif key in _LISTS and key in base:
                yield from _contradictions(base[key], setting, at)
            elif key == "slurmduser" and setting.value not in ("root", "0"):
                yield Fault(at, "SlurmdUser: expected root, which starts jobs as their users")
            elif key == "maxnodecount":
                yield from _room_faults(inputs, setting, at)
    yield from _twice(inputs)
    yield from unread("slurm.conf", _written(_base(inputs)) + "".join(_sets(inputs)))
    yield from _partition_faults(inputs)


def unread(file: str, written: str) -> Iterator[Fault]:
    """Find lines that a daemon would not read as we write them: one could swallow the next."""
    for line in written.split("\n"):
        if line and not lines.is_kept(line):
            text = f"{line[:80]!r} would be read otherwise than it stands: expected no #, no quotation mark, no \\ at its end"
            yield Fault(file, text)


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
    # A worker's pod may come back on a machine that has booted meanwhile: Slurm takes that for an unexpected reboot.
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
    """Return what slurmctld and slurmdbd must agree on."""
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
    """Configless ships to the workers only what is named without a path."""
    for key, reference, folder in (
        ("PrologSlurmctld", "prolog_slurmctld_script_refs", f"{ETC}/"),
        ("EpilogSlurmctld", "epilog_slurmctld_script_refs", f"{ETC}/"),
        ("Prolog", "prolog_script_refs", ""),
        ("Epilog", "epilog_script_refs", ""),
    ):
        for file in sorted(inputs.files(reference)):
            yield Setting(key, folder + file)


def _sets(inputs: ConfigurationInputs) -> Iterator[str]:
    for each in inputs.sorted_node_sets:
        name = each.slurm_name
        yield f"NodeSet={name} Feature={name}\n"
        if each.spec.partition and each.spec.partition.enabled:
            words = ("PartitionName=" + name, f"Nodes={name}", each.spec.partition.config or "")
            yield " ".join(filter(None, words)) + "\n"


def _external(inputs: ConfigurationInputs) -> Iterator[Setting]:
    """What slurmrestd needs to find a slurmctld elsewhere."""
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
    """Leave room for twice as many workers as there are: raising it restarts nothing, but a full table refuses them."""
    wanted = sum(map(_workers, inputs.node_sets))
    found = LEAST_MAX_NODES
    while found < 2 * wanted:
        found *= 2
    return min(found, _MOST_NODES)


def _workers(node_set: NodeSetObject) -> int:
    """Return how many workers there are to be; where the Kubernetes nodes decide that, as it was last told."""
    if is_on_nodes(node_set):
        return max(node_set.status.desired, node_set.status.replicas)
    return node_set.spec.replicas


def _room_faults(inputs: ConfigurationInputs, setting: Setting, at: str) -> Iterator[Fault]:
    """A worker for which there is no room falls out of Slurm, with its jobs."""
    wanted = sum(map(_workers, inputs.node_sets))
    if setting.value.isdecimal() and int(setting.value[:9]) < wanted:
        text = f"{setting.key}={setting.value[:80]}: expected room for the {wanted} workers of all NodeSets"
        yield Fault(at, text)


def _with(ours: Setting, theirs: Setting | None) -> str:
    """Return the value: theirs, or both where it is a list."""
    if theirs is None:
        return ours.value
    if ours.key.lower() not in _LISTS:
        return theirs.value
    return ",".join(dict.fromkeys((*lines.words(ours.value), *lines.words(theirs.value))))


def _kept(line: ConfLine, ours: set[str]) -> str:
    """Return what is left of a line of `extraConf` without what stands in our part."""
    if _is_repeated(line):
        return line.text
    kept = [setting for setting in line.settings if setting.key.lower() not in ours]
    return (
        line.text if len(kept) == len(line.settings) else _written(kept).replace("\n", " ").strip()
    )


def _is_repeated(line: ConfLine) -> bool:
    known = SLURM_CONF.get(line.settings[0].key.lower()) if line.settings else None
    return known is not None and known.kind is ParameterKind.REPEATED


def _written(settings: Iterator[Setting] | list[Setting]) -> str:
    return "".join(f"{setting.key}={_quoted(setting.value)}\n" for setting in settings)


def _quoted(value: str) -> str:
    return f'"{value}"' if any(map(str.isspace, value)) else value


def _contradictions(ours: Setting, theirs: Setting, at: str) -> Iterator[Fault]:
    by_name: Mapping[str, str] = {
        each.partition("=")[0].lower(): each for each in lines.words(ours.value)
    }
    for word in lines.words(theirs.value):
        present = by_name.get(word.partition("=")[0].lower())
        if present is not None and "=" in present and present != word:
            yield Fault(at, f"{theirs.key}: {word} contradicts {present}, which the pods need")


def _partition_faults(inputs: ConfigurationInputs) -> Iterator[Fault]:
    names = {each.slurm_name for each in inputs.node_sets}
    taken: dict[str, str] = {}
    for each in inputs.sorted_node_sets:
        if each.spec.partition and each.spec.partition.enabled:
            at = f"NodeSet {each.metadata.name} spec.partition.config"
            taken[each.slurm_name] = f"NodeSet {each.metadata.name}"
            config = each.spec.partition.config or ""
            whole = f"PartitionName={each.slurm_name} {config}"
            yield from (
                Fault(at, found.message) for found in checking.check("slurm.conf", whole, at)
            )
            if any(word.lower().startswith("nodes=") for word in config.split()):
                yield Fault(at, "Nodes is the NodeSet itself: write another partition to extraConf")
    listed = tuple(lines.read(inputs.controller.spec.extra_conf))
    known = names | {line.settings[0].value for line in listed if _begins(line, "nodeset")}
    has_nodes = any(_begins(line, "nodename") for line in listed)
    for line in listed:
        if not _begins(line, "partitionname"):
            continue
        at = f"spec.extraConf line {line.number}"
        if owner := taken.get(line.settings[0].value):
            yield Fault(at, f"partition {line.settings[0].value} is {owner}'s own already")
        for setting in line.settings[1:]:
            if setting.key.lower() == "nodes" and not has_nodes:
                yield from _unknown_nodes(setting.value, known, at)


def _twice(inputs: ConfigurationInputs) -> Iterator[Fault]:
    """Find names that stand twice, at which slurmctld ends; DEFAULT is none, but what holds for the lines after it."""
    seen = {
        ("nodeset", each.slurm_name): f"NodeSet {each.metadata.name}" for each in inputs.node_sets
    }
    for line in lines.read(inputs.controller.spec.extra_conf):
        first = line.settings[0] if line.settings else None
        if first is None or first.key.lower() not in _NAMED or first.value.upper() == "DEFAULT":
            continue
        before = seen.setdefault((first.key.lower(), first.value), f"line {line.number}")
        if before != f"line {line.number}":
            text = (
                f"{first.key}={first.value[:80]} stands in {before} already: expected another name"
            )
            yield Fault(f"spec.extraConf line {line.number}", text)


def _unknown_nodes(value: str, known: set[str], at: str) -> Iterator[Fault]:
    for word in lines.words(value):
        if word.upper() != "ALL" and word not in known:
            has = ", ".join(sorted(known)) or "none"
            yield Fault(at, f"Nodes={word}: there is no such NodeSet; there is {has}")


def _begins(line: ConfLine, key: str) -> bool:
    return bool(line.settings) and line.settings[0].key.lower() == key
