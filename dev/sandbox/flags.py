"""Commands whose options are the fields of a dataclass, so that name, help and default stand once."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Annotated, Any, cast

from typer.models import OptionInfo

_Command = Callable[..., None]


def taken_from(options: type, **others: object) -> Callable[[_Command], _Command]:
    """Give a command the fields of a dataclass as options; it gets them as its `**` argument.

    Args:
        options: the dataclass; its fields are annotated with a `typer.Option`. A tuple's
            option may be repeated.
        others: defaults that differ from the field's, by its name; a default's type is the option's then.
    """

    def decorate(command: _Command) -> _Command:
        own = [*inspect.signature(command).parameters.values()][:-1]
        taken = [
            _parameter(field, others.get(field.name, field.default)) for field in fields(options)
        ]

        @functools.wraps(command)
        def with_tuples(**values: Any) -> None:
            command(
                **{
                    name: tuple(value) if isinstance(value, list) else value
                    for name, value in values.items()
                }
            )

        vars(with_tuples)["__signature__"] = inspect.Signature([*own, *taken])
        return with_tuples

    return decorate


def arguments(field: Field[Any], value: object) -> tuple[str, ...]:
    """Return the arguments that give a field's option this value."""
    option = _option(field)
    # typer keeps the first name of an annotated option as its `default`
    name = field.name.replace("_", "-") if option.default is ... else str(option.default)[2:]
    if isinstance(value, bool):
        return (f"--{name}" if value else f"--no-{name}",)
    return tuple(f"--{name}={one}" for one in (value if isinstance(value, tuple) else (value,)))


def _parameter(field: Field[Any], default: object) -> inspect.Parameter:
    annotation: object = field.type
    if isinstance(default, tuple):
        default, annotation = [], Annotated[list[str], _option(field)]
    elif default is not field.default and default is not None:
        annotation = Annotated[type(default), _option(field)]
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _option(field: Field[Any]) -> OptionInfo:
    (option,) = field.type.__metadata__  # type: ignore[union-attr]  # it is annotated
    return cast(OptionInfo, option)
