"""Keywords checked by name and type against a signature, before anything is called."""

import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from peerseg.errors import PeersegError, nearest


def check_section(
    section: str,
    given: Mapping[str, Any],
    target: Callable[..., Any],
    supplied: Sequence[str] = (),
    reserved: Sequence[str] = (),
) -> dict[str, Any]:
    """Check one section, and fill in the defaults of what it leaves out.

    Args:
        section: Its name, for messages.
        given: Its keys and values, as read.
        target: What they are keywords of.
        supplied: Parameters that the program fills in itself.
        reserved: Keys of the section that were read already, for the hint.

    Returns:
        Every keyword with its value, in the signature's order.
    """
    parameters = {name: p for name, p in inspect.signature(target).parameters.items() if name not in supplied}
    for key in given:
        if key not in parameters:
            known = (*parameters, *reserved)
            raise PeersegError(f"{section}.{key} is no setting of {target.__name__}; {nearest(key, known)}")
    hints = typing.get_type_hints(target.__init__ if inspect.isclass(target) else target)
    checked = {}
    for name, parameter in parameters.items():
        if name in given:
            checked[name] = convert(f"{section}.{name}", given[name], hints.get(name, Any))
        elif parameter.default is inspect.Parameter.empty:
            raise PeersegError(
                f"{section}.{name} is missing, expected {spell(hints.get(name, Any))}: give --{section}.{name}"
            )
        else:
            checked[name] = parameter.default
    return checked


def convert(name: str, value: Any, hint: Any) -> Any:
    """A value of the type a parameter asks for.

    Args:
        name: Of the setting, for the message.
        value: As YAML gave it.
        hint: The parameter's annotation.

    Returns:
        The value; lists become tuples, whole numbers floats, and "1e-3", which YAML takes for a word, a number.
    """
    fitted = _fit(value, hint)
    if fitted is _MISFIT:
        raise PeersegError(f"{name} is {value!r}, expected {spell(hint)}")
    return fitted


_MISFIT = object()


def _fit(value: Any, hint: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        if Path in arguments and (isinstance(value, str) or type(value) is int):  # a folder may be called 2024
            return str(Path(str(value)).expanduser().absolute())  # so that the run can be used from any folder
        # Exact types first, so that 3 stays a whole number under `int | float`.
        choices = sorted(arguments, key=lambda choice: choice is not type(value))
        return next((fit for choice in choices if (fit := _fit(value, choice)) is not _MISFIT), _MISFIT)
    if origin is Literal:
        return value if value in arguments else _MISFIT
    if origin in (tuple, Sequence, list):
        return _fit_items(value, arguments, variable=origin is not tuple or arguments[-1] is Ellipsis)
    if origin in (dict, Mapping):
        return value if isinstance(value, Mapping) else _MISFIT
    if hint is float:
        return _fit_float(value)
    wanted = str if hint is Path else hint
    exact = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    return value if exact else _MISFIT


def _fit_items(value: Any, arguments: tuple[Any, ...], variable: bool) -> Any:
    if not isinstance(value, (list, tuple)) or not (variable or len(value) == len(arguments)):
        return _MISFIT
    hints = [arguments[0]] * len(value) if variable else arguments
    items = tuple(_fit(item, hint) for item, hint in zip(value, hints, strict=True))
    return _MISFIT if any(item is _MISFIT for item in items) else items


def _fit_float(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return _MISFIT
    try:
        number = float(value)
    except ValueError:
        return _MISFIT
    return number if math.isfinite(number) else _MISFIT


def spell(hint: Any) -> str:
    """A type in words a user knows.

    Args:
        hint: An annotation.

    Returns:
        Such as "a number" or "one of train, eval".
    """
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "null"}
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in words:
        return words[hint]
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(spell(choice) for choice in arguments))
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if origin in (tuple, list, Sequence):
        return f"a list of {spell(arguments[0])}"
    return "a table" if origin in (dict, Mapping) else "text"
