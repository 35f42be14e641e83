"""What is read without Typer is what Typer reads; everything else is left to Typer."""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from slurmcli import plugin, queue, why
from slurmcli.line import plain_words
from slurmcli.line.declaring import BadOperand
from slurmcli.line.options import Way, reaches_both

NOTHING: Mapping[str, str] = MappingProxyType({})
VARIABLES = {"KUBECONFIG": "/from/environment", "SLURMRESTD_URL": "http://slurm:6820"}
WORDS = st.sampled_from(
    (
        *("held", "a/held", "", " ", "-", "--", "=", "ä"),
        *("-n", "-nteam", "-n=team", "--namespace", "--namespace=team", "--namespace=", "--names"),
        *("-o", "json", "yaml", "JSON", "-ojson", "--output=json", "--output=none"),
        *("-A", "--all-namespaces", "--all-namespaces=true", "-w", "-Aw", "--no-watch"),
        *("--kubeconfig", "--kubeconfig=/else", "--slurm-url=", "--release-namespace=mine"),
        *("--slurm-token-file", "/token", "--help", "-h", "--unknown"),
    )
)


@pytest.mark.parametrize("command", [why.command, queue.command], ids=["why", "queue"])
@given(words=st.lists(WORDS, max_size=5), environment=st.sampled_from([NOTHING, VARIABLES]))
def test_what_is_read_is_what_typer_reads(
    command: Callable[..., None], words: list[str], environment: Mapping[str, str]
) -> None:
    found = plain_words.read(inspect.signature(reaches_both(command)), words, environment)

    if found is not None:
        assert found == as_typer_reads(command, words, environment)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["held"], {"pod": "held"}),
        (["-n", "team", "held"], {"pod": "held", "namespace": "team"}),
        (["held", "--namespace=team"], {"pod": "held", "namespace": "team"}),
        (["held", "-o", "json", "-o", "yaml"], {"pod": "held", "form": "yaml"}),
        (["held", "--slurm-url", "http://a,http://b"], {"slurm_url": "http://a,http://b"}),
    ],
)
def test_plain_words_need_no_typer(words: list[str], expected: Mapping[str, str]) -> None:
    found = plain_words.read(inspect.signature(reaches_both(why.command)), words, NOTHING)

    assert found is not None
    assert expected.items() <= found.items()


@pytest.mark.parametrize(
    "words",
    [
        *([], ["one", "two"], ["--help"], ["held", "--", "-n"], ["held", "-n"], ["held", "-nteam"]),
        *(["held", "-n", "-o"], ["held", "-o", "none"], ["held", "--output=none"], ["held", "-x"]),
    ],
)
def test_the_rest_is_left_to_typer(words: list[str]) -> None:
    assert plain_words.read(inspect.signature(reaches_both(why.command)), words, NOTHING) is None


def test_a_command_with_options_for_typer_alone_is_left_to_it() -> None:
    def command(name: Annotated[str, "for another reader"]) -> None:
        raise AssertionError(name)

    assert plain_words.read(inspect.signature(command), ["held"], NOTHING) is None


def test_typer_says_what_is_wrong_with_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    def command(*, way: Way) -> None:
        raise BadOperand(f"no such thing with {way.kubeconfig_file}")

    monkeypatch.setattr(why, "command", command)
    done = CliRunner().invoke(plugin.app(["why"]), ["why", "--kubeconfig", "mine"])

    assert 2 == done.exit_code
    assert "no such thing with mine" in done.stderr


def as_typer_reads(
    command: Callable[..., None], words: list[str], environment: Mapping[str, str]
) -> Mapping[str, object] | str:
    read: list[Mapping[str, object]] = []

    def noted(**given: object) -> None:
        read.append(given)

    noted.__signature__ = inspect.signature(reaches_both(command))  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugin, "_command", lambda _name: noted)
        unset = dict.fromkeys(VARIABLES)
        done = CliRunner().invoke(
            plugin.app(["why"]), ["why", *words], env={**unset, **environment}
        )
    return read[0] if read else done.output
