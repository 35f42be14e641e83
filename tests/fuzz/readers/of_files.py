"""Readers of configuration: slurm.conf of users, slurmctld's verdicts on it, settings, kubeconfig, tokens, the log."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

from bridge.settings.schema import ENV_PREFIX, Settings
from slurmclient.errors import Unauthorized
from slurmclient.transport import jwt, tokens
from slurmexporter.door import web_config
from slurmoperator.configuration import lines, refusals
from slurmoperator.configuration.rendering import render
from slurmoperator.daemons import trials
from slurmoperator.keys import rings, token_policy
from slurmoperator.nodesets.plan import admission, troubles, workers
from slurmoperator.objects import names
from slurmoperator.objects.parts import LONGEST_CONF
from slurmoperator.rendering import ssh, trying
from slurmruntime.endpoints.finding import ControllerName
from slurmruntime.kube.kubeconfig import kubeconfig
from slurmruntime.process import logging
from slurmruntime.settings import sources, values
from slurmruntime.values.faults import Refusal
from tests.fuzz.grammars import YAML, framed, json_of
from tests.fuzz.readers.reader import (
    ADMINISTRATOR,
    MIB,
    NAME,
    OBJECT,
    SLURM,
    USER,
    Reader,
    in_bytes,
    to_the_end,
)
from tests.slurmoperator.configuration.given import inputs

_LOG = 64 * 1024
"""Bytes of a log that slurm-operator asks for."""
_FILE = MIB


def _of_user(name: str, read: Callable[[str], object], *, dear: str = "", **more: float) -> Reader:
    return Reader(
        name=name,
        author=USER,
        most_bytes=LONGEST_CONF,
        read=read,
        grammar=framed(
            ("", ""),
            ("Gres=", ""),
            more=("A=a ", "A=a\n", "a=\n", "Match a\n", "PartitionName=a\n", "include a\n"),
        ),
        refusals=(Refusal,),
        steps=more.get("steps", 16),
        fixed_steps=int(more.get("fixed_steps", 4000)),
        memory=more.get("memory", 200),
        dear=dear,
    )


def _in_a_file(read: Callable[[Path], object]) -> Callable[[str], object]:
    def reading(text: str) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            path.write_bytes(text.encode(errors="surrogatepass"))
            return read(path)

    return reading


def _settings(path: Path) -> object:
    return sources.read(Settings, config=path, environment={}, prefix=ENV_PREFIX, secrets_dir=None)


def _rendered(text: str) -> object:
    lines.read.cache_clear()
    return render(inputs(extraConf=text))


def _parsed(text: str) -> object:
    """Read no more lines than a configuration may have."""
    return list(lines.excess(text)) or list(lines.parse(text))


def _explained(message: str) -> object:
    written = [
        refusals.UserLine(f"line {n}", line.text, line.settings)
        for n, line in enumerate(lines.read("A=a b=c\n" * 50))
    ]
    return refusals.explain(message, "slurmctld", written, wanted="A=a\n" * 50, in_force="")


_TAG = "a" * 64
_ON_A_THREAD = "on a thread, with the rest of the plan (`slurmoperator.daemons.loop`)"
_AT_THE_START = "at the start, and on a thread when the file has changed"

READERS: tuple[Reader, ...] = (
    _of_user(
        "slurmoperator.configuration.rendering:render",
        _rendered,
        steps=40,
        fixed_steps=80_000,
        memory=400,
    ),
    _of_user("slurmoperator.configuration.lines:words", lines.words, dear=_ON_A_THREAD),
    _of_user(
        "slurmoperator.configuration.lines:parse",
        _parsed,
        memory=400,
    ),
    _of_user("slurmoperator.nodesets.plan.troubles:promised_devices", troubles.promised_devices),
    _of_user("slurmoperator.nodesets.plan.admission:_shown", admission._shown),
    _of_user("slurmoperator.nodesets.plan.workers:_clean", workers._clean),
    _of_user("slurmoperator.rendering.ssh:sshd_config", ssh.sshd_config),
    Reader(
        name="slurmoperator.objects.names:faults",
        author=USER,
        most_bytes=NAME,
        read=to_the_end(lambda text: names.faults("Controller", text)),
    ),
    Reader(
        name="slurmruntime.endpoints.finding:ControllerName.parse",
        author=ADMINISTRATOR,
        most_bytes=2 * NAME + 1,
        read=ControllerName.parse,
        grammar=framed(("", ""), ("a/", "")),
        refusals=(ValueError,),
    ),
    Reader(
        name="slurmoperator.keys.rings:keys_of",
        author=USER,
        most_bytes=OBJECT,
        read=in_bytes(lambda text: rings.keys_of(1, text)),
        grammar=json_of(
            ('{"keys":[', '{"kid":"a","k":"a"}]}'),
            more=('{"kid":"key-1","k":"====","kty":"oct","alg":"HS256"},',),
        ),
    ),
    Reader(
        name="slurmoperator.keys.token_policy:lifetime_s",
        author=USER,
        most_bytes=64,
        read=token_policy.lifetime_s,
        refusals=(ValueError,),
    ),
    Reader(
        name="slurmoperator.daemons.trials:verdict",
        author=USER,
        most_bytes=_LOG,
        read=lambda log: (trials.verdict(log, _TAG), trials.unfit_nodes(log, _TAG)),
        grammar=framed(
            ("", ""),
            (f"{trying.LOG_PREFIX} unfit ", ""),
            more=(f"{trying.LOG_PREFIX} unfit {_TAG} x y\n",),
        ),
    ),
    Reader(
        name="slurmoperator.configuration.refusals:explain",
        author=USER,
        most_bytes=_LOG,
        read=_explained,
        grammar=framed(("", ""), more=("slurm.conf line 1 ", "(line 1 ", "(line 1 slurm.conf")),
    ),
    Reader(
        name="slurmruntime.settings.sources:read",
        author=ADMINISTRATOR,
        most_bytes=_FILE,
        read=_in_a_file(_settings),
        grammar=YAML,
        dear=_AT_THE_START,
        refusals=(sources.Invalid,),
        steps=400,
        memory=1200,
    ),
    Reader(
        name="slurmexporter.door.web_config:parse",
        author=ADMINISTRATOR,
        most_bytes=web_config.LONGEST_BYTES,
        read=in_bytes(lambda content: web_config.parse(content, Path("web.yaml"))),
        grammar=YAML,
        dear=_AT_THE_START,
        refusals=(web_config.UnusableWebConfig,),
        steps=400,
        memory=1200,
    ),
    Reader(
        name="slurmruntime.kube.kubeconfig.kubeconfig:read",
        author=ADMINISTRATOR,
        most_bytes=_FILE,
        read=_in_a_file(lambda path: kubeconfig.read(str(path))),
        grammar=YAML,
        dear=_AT_THE_START,
        refusals=(kubeconfig.NotPlain,),
        steps=400,
        memory=1200,
    ),
    Reader(
        name="slurmclient.transport.tokens:check_token",
        author=ADMINISTRATOR,
        most_bytes=_FILE,
        read=tokens.check_token,
        refusals=(Unauthorized,),
    ),
    Reader(
        name="slurmclient.transport.jwt:expiry",
        author=ADMINISTRATOR,
        most_bytes=_FILE,
        read=lambda text: jwt._moment(text, "exp"),
        grammar=framed(("", ""), ("a.", ".b"), more=("e30", "eyJ", ".")),
    ),
    Reader(
        name="slurmruntime.process.logging:redact",
        author=SLURM,
        most_bytes=MIB,
        read=lambda text: logging.redact(Mock(), "info", {"error": text}),
        grammar=framed(
            ("", ""), ("eyJ", ""), more=("eyJ", "eyJaaaaaa.", "eyJaaaaaa.bbbbbb.", "eyJ.")
        ),
    ),
    *(
        Reader(
            name=f"slurmruntime.settings.values:{read.__name__}",
            author=ADMINISTRATOR,
            most_bytes=_FILE,
            read=read,
            grammar=framed(("", ""), ("http://", ""), ("[", "]:1")),
            refusals=(ValueError,),
        )
        for read in (
            values.address,
            values._http_url,
            values._host,
            values.is_exposed,
            values.parse_json,
        )
    ),
)
