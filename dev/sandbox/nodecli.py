"""`slurm-bridge sandbox node …` and `… image …`: real nodes, and the images they run."""

from pathlib import Path
from typing import Annotated

import typer

from sandbox.client import Sandbox
from sandbox.realnodes import configuration, images
from sandbox.realnodes.images import Image
from sandbox.words import State, plainly

node = typer.Typer(
    name="node",
    help="Act on a real node; 'stop', 'start', 'pause' and 'resume' take its name, too.",
    no_args_is_help=True,
)
image = typer.Typer(name="image", help="Images for real nodes, without a registry.")

NodeName = Annotated[str, typer.Argument(help="Node, such as real-0.")]
KINDS = ", ".join(configuration.PRESSURES)


@node.command()
def kill(name: NodeName, *, state: State) -> None:
    """Cut its power: everything on it is gone at once, its disk stays."""
    with plainly():
        sandbox = Sandbox(state)
        sandbox.stop(sandbox.real(name), signal="KILL")


@node.command()
def reboot(name: NodeName, *, state: State) -> None:
    """Cut its power and start it again; return when its kubelet answers."""
    with plainly():
        sandbox = Sandbox(state)
        sandbox.restart(sandbox.real(name), signal="KILL")


@node.command()
def pressure(
    name: NodeName, kind: Annotated[str, typer.Argument(help=f"{KINDS}.")], *, state: State
) -> None:
    """Put it under memory, disk or pid pressure, as its kubelet sees it, or relieve it with none."""
    with plainly():
        Sandbox(state).press(name, kind)


@node.command()
def restart(
    name: NodeName,
    daemon: Annotated[
        str,
        typer.Argument(
            help="kubelet, containerd, kube-proxy, fake-gpus, dra-test-driver or slurmd."
        ),
    ],
    *,
    state: State,
) -> None:
    """Kill one of its daemons; the node starts it again half a second later."""
    with plainly():
        Sandbox(state).end_daemon(name, daemon)


@node.command(context_settings={"ignore_unknown_options": True})
def run(
    name: NodeName,
    command: Annotated[list[str], typer.Argument(help="Command and arguments, after --.")],
    *,
    state: State,
) -> None:
    """Run a command on it, as root, and print the output."""
    with plainly():
        typer.echo(Sandbox(state).on_node(name, *command), nl=False)


@image.command()
def build(
    name: Annotated[str, typer.Argument(help="Name, such as local/tool:1.")],
    folder: Annotated[Path, typer.Argument(help="Folder that becomes the image's /.")],
    out: Annotated[Path, typer.Argument(help="Archive to write.")],
    *,
    entrypoint: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    command: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    user: Annotated[str, typer.Option(help="uid or uid:gid.", show_default="root")] = "",
) -> None:
    """Build an image with one layer from a folder; print its full name."""
    with plainly():
        full_name = images.full_name(name)
        built = Image(
            name=full_name,
            entrypoint=tuple(entrypoint or ()),
            command=tuple(command or ()),
            user=user,
        )
        images.archive(out, built, images.layer_of_folder(folder))
    typer.echo(full_name)


@image.command()
def load(archive: Path, *, state: State) -> None:
    """Load an archive into every real node, now and after its reboots."""
    with plainly():
        Sandbox(state).load_image(archive)
