"""Prepare the files of a sandbox and list the parts to run."""

from collections.abc import Sequence
from datetime import datetime

from sandbox import (
    accounting,
    chart,
    environment,
    escrow,
    kubernetes,
    kwok,
    services,
    slurm,
    slurmd,
    workloads,
)
from sandbox.assets import Asset, AssetName
from sandbox.instance import Instance
from sandbox.operator import serving
from sandbox.options import Options
from sandbox.part import Part
from sandbox.realnodes import box, dns
from sandbox.realnodes import slurmd as real_slurmd
from sandbox.realnodes.network import Network


def needed(options: Options) -> tuple[AssetName, ...]:
    """Return the programs that a sandbox with these options needs."""
    names = []
    if options.kubernetes:
        names.append(AssetName.KUBE)
    if options.slurm:
        names.append(AssetName.SLURM)
    if options.workloads:
        names.append(AssetName.WORKLOADS)
    if options.bridge or options.operator:
        names.append(AssetName.HELM)
    if options.real_nodes:
        names.append(AssetName.NODE)
    if options.dns:
        names.append(AssetName.COREDNS)
    return tuple(names)


def assemble(
    instance: Instance,
    programs: dict[AssetName, Asset],
    now: datetime,
    network: Network | None = None,
) -> Sequence[Part]:
    """Write all files that the parts read; return the parts, ready to start.

    Args:
        instance: the sandbox.
        programs: those that `needed` names.
        now: certificates and tokens are valid from then.
        network: of the real nodes, if there are any.
    """
    options = instance.options
    parts: list[Part] = []
    if options.slurm:
        asset = programs[AssetName.SLURM]
        slurm.prepare(instance, asset, now, network)
        if options.accounting:
            accounting.prepare(instance, asset)
            parts += accounting.parts(instance, asset)
        parts += slurm.parts(instance, asset)
        if options.slurmd_names:
            slurmd.check(instance, asset)
            slurmd.prepare(instance, asset)
            parts += slurmd.parts(instance, asset)
    if options.kubernetes:
        asset = programs[AssetName.KUBE]
        kubernetes.prepare(instance, now, (network.gateway,) if network else ())
        parts += kubernetes.parts(instance, asset.bin)
        parts.append(kwok.part(instance, asset.bin))
        (instance.bin / "kubectl").symlink_to(asset.bin / "kubectl")
        environment.write_plugin(instance)
    if options.workloads:
        workloads.prepare(instance, now)
        parts += workloads.parts(instance, programs[AssetName.WORKLOADS])
    if options.bridge:
        (instance.bin / "helm").symlink_to(programs[AssetName.HELM].bin / "helm")
        chart.prepare(instance, now)
        escrow.prepare(instance)
        user, kube_version = (
            slurm.job_user(programs[AssetName.SLURM]),
            programs[AssetName.KUBE].version,
        )
        rendered = chart.render(instance, user, kube_version)
        parts += services.parts(instance, programs[AssetName.KUBE].bin, rendered)
    if network is not None:
        parts += _real_nodes(instance, programs, now, network)
    environment.write(instance)
    return parts


def _real_nodes(
    instance: Instance, programs: dict[AssetName, Asset], now: datetime, network: Network
) -> Sequence[Part]:
    """Write the files of the real nodes and of the parts that serve them; return all these parts."""
    options = instance.options
    kube, node = programs[AssetName.KUBE], programs[AssetName.NODE]
    box.prepare(instance, kube, node, network, now)
    daemons = programs[AssetName.SLURM] if options.hybrid else None
    if daemons is not None:
        real_slurmd.prepare(instance, daemons, network)
    parts = [*box.parts(instance, kube, node, network, daemons)]
    if options.dns:
        dns.prepare(instance, network, now)
        parts.append(dns.part(instance, programs[AssetName.COREDNS], network))
    if options.operator:
        serving.prepare(instance, programs[AssetName.HELM].bin / "helm")
        parts += serving.parts(instance)
    return parts
