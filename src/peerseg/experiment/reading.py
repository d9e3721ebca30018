"""Reading what a user says: recipes by name or file, protocols, and settings on the command line."""

import importlib.resources
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from peerseg.errors import PeersegError, nearest


def recipe_names() -> list[str]:
    """The recipes that come with the program."""
    folder = importlib.resources.files("peerseg.recipes")
    return sorted(path.name.removesuffix(".yaml") for path in folder.iterdir() if path.name.endswith(".yaml"))


def read_recipe(name: str) -> dict[str, Any]:
    """Read a recipe by name, or from a file.

    Args:
        name: One of ``recipe_names``, or a YAML file.

    Returns:
        Its sections.
    """
    if name in recipe_names():
        text = (importlib.resources.files("peerseg.recipes") / f"{name}.yaml").read_text(encoding="utf8")
    elif Path(name).is_file():
        text = _text(Path(name))
    elif name.endswith((".yaml", ".yml")):
        raise PeersegError(
            f"the recipe file {name!r} does not exist; recipes that come along: {', '.join(recipe_names())}"
        )
    else:
        raise PeersegError(f"{name!r} is no recipe and no file; {nearest(name, recipe_names())}")
    try:
        recipe = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # impossible dates are a ValueError
        raise PeersegError(f"the recipe {name!r} is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(recipe, dict):
        raise PeersegError(
            f"the recipe {name!r} holds no table of settings; `peerseg train demo --print_config` shows one"
        )
    return recipe


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PeersegError(f"the recipe {str(path)!r} is no text: give a YAML file, or a recipe by name") from error


def settle(given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Choose wherever a recipe gives a value by another one, as in ``steps: {by: data.ratio, 16: 39680, 8: 39338}``.

    Args:
        given: Dotted name -> value; only choices are looked at.
        known: What can be chosen by.

    Returns:
        Dotted name -> the value that applies.
    """
    tables = {name: value for name, value in given.items() if isinstance(value, dict) and "by" in value}
    open_ = [name for name, table in tables.items() if known.get(table["by"]) not in list(table)]
    if open_:
        by = tables[open_[0]]["by"]
        listed = ", ".join(str(key) for key in tables[open_[0]] if key != "by")
        raise PeersegError(
            f"the recipe gives {' and '.join(open_)} for {by} {listed}, not for {known.get(by)!r}: give "
            f"{' and '.join(f'--{name}' for name in open_)} too"
        )
    return {name: table[known[table["by"]]] for name, table in tables.items()}


def protocol_overrides(protocol: str, method: str) -> dict[str, Any]:
    """What a protocol sets for a method, whatever the recipe.

    Args:
        protocol: "product", "paper" or "code".
        method: Its name.

    Returns:
        Dotted overrides.
    """
    text = importlib.resources.files("peerseg.experiment").joinpath("protocols.yaml").read_text(encoding="utf8")
    protocols = yaml.safe_load(text)
    if protocol not in protocols:
        raise PeersegError(f"--protocol is {protocol!r}; {nearest(protocol, protocols)}")
    if method not in protocols[protocol]:
        raise PeersegError(f"--protocol {protocol} says nothing of the method {method!r}: give its settings one by one")
    return {f"method.{key}": value for key, value in protocols[protocol][method].items()}


def parse_overrides(words: Sequence[str]) -> dict[str, Any]:
    """Read ``--section.key value`` and ``--section.key=value`` from a command line.

    Args:
        words: What the parser did not know.

    Returns:
        Dotted name -> value, read as YAML reads it.
    """
    overrides: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            raise PeersegError(f"{word!r} is not expected here: settings are given as --section.key value")
        if not equals:
            if not rest:
                raise PeersegError(f"{word!r} has no value: settings are given as --section.key value")
            value = rest.pop(0)
        try:
            overrides[name] = _value(value)
        except (yaml.YAMLError, ValueError) as error:  # impossible dates are a ValueError
            raise PeersegError(f"{word!r} has the value {value!r}, which cannot be read: quote it") from error
    return overrides


def _value(text: str) -> Any:
    """What YAML reads; but text is taken as it stands, such as a path in which YAML would see a comment or a table."""
    found = yaml.safe_load(text)
    bare = not text.lstrip().startswith(("'", '"', "{", "["))
    return text if bare and isinstance(found, (str, dict, list)) else found
