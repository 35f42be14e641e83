"""The options that commands share; each is declared once."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from slurmcli.line.declaring import Option
from slurmcli.output import Format
from slurmruntime.kube.kubeconfig import kubeconfig

FormatOption = Annotated[Format, Option(("--output", "-o"), help="Output format.")]
Namespace = Annotated[
    str, Option(("--namespace", "-n"), show_default="the kubeconfig's", metavar="NAME")
]
ReleaseNamespace = Annotated[
    str, Option(help="Namespace slurm-bridge is installed in.", metavar="NAME")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How to reach both systems; each field is an option of every command."""

    kubeconfig: Annotated[
        str,
        Option(
            envvar="KUBECONFIG",
            help="Kubeconfig to use.",
            show_default="~/.kube/config",
            metavar="FILE",
        ),
    ] = ""
    slurm_url: Annotated[
        str,
        Option(
            ("--slurm-url",),
            envvar="SLURMRESTD_URL",
            help="URL of slurmrestd; separate several with commas.",
            metavar="URL",
        ),
    ] = ""
    slurm_token_file: Annotated[
        str, Option(help="File with a Slurm token; otherwise SLURM_JWT is used.", metavar="FILE")
    ] = ""

    @property
    def namespace(self) -> str:
        """The kubeconfig's namespace, for when `-n` is not given."""
        return kubeconfig.namespace(self.kubeconfig_file) or "default"

    @property
    def kubeconfig_file(self) -> str:
        """The path of the kubeconfig."""
        return self.kubeconfig or str(Path("~/.kube/config").expanduser())


def reaches_both(command: Callable[..., None]) -> Callable[..., None]:
    """Replace a command's parameter `way` by the options of `Way`."""
    parameters = inspect.signature(command).parameters
    reach = inspect.signature(Way).parameters

    @functools.wraps(command)
    def with_options(**arguments: object) -> None:
        way = {name: str(arguments.pop(name)) for name in reach}
        command(way=Way(**way), **arguments)

    own = [parameter for name, parameter in parameters.items() if name != "way"]
    signature = inspect.Signature([*own, *reach.values()])
    vars(with_options)["__signature__"] = signature
    return with_options
