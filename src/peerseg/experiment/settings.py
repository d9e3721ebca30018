"""Settings: a recipe, a protocol and overrides, resolved into one frozen table and checked before anything runs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from peerseg.errors import PeersegError, nearest
from peerseg.experiment.reading import protocol_overrides, read_recipe, settle

SECTIONS = ("data", "network", "method", "optimizer", "loader", "evaluation", "placement")
# What the program fills in itself, by section.
SUPPLIED = {
    "network": ("classes", "channels"),
    "method": ("networks",),
    "optimizer": ("groups",),
    "placement": ("count",),
}
PUBLISHED_GPUS = 8  # what the authors' scripts ask for
# What may differ when a run is resumed: nothing that changes a result; where the data lies, but not what it is.
FREE = ("loader.workers", "data.root", "data.lists")
# Where what a run began with lies; a round of DMT may have been moved with all the others.
PLACES = ("loader.stored", "start")
# A weight or a ramp means something else to every method; only these settings mean the same to all ...
SHARED = {"hardest", "certain"}
# ... and to these methods, all they have in common.
KIN = {"ncps", "ncps-cutmix"}


@dataclass(frozen=True)
class Settings:
    """All settings of one run; each section holds every keyword of what it names.

    Args:
        data: The data set.
        network: Every network, unless ``networks`` says otherwise.
        networks: What the single networks have of their own, one table each; empty where they are alike.
        method: The method, and ``count``, the number of networks.
        optimizer: The optimizer.
        loader: How batches are made.
        evaluation: How they are judged.
        placement: Where the networks live.
        steps: How long.
        seed: Of all chance.
        start: The folder of a run whose networks this one begins with; None: with new ones.
    """

    data: dict[str, Any]
    network: dict[str, Any]
    networks: tuple[dict[str, Any], ...]
    method: dict[str, Any]
    optimizer: dict[str, Any]
    loader: dict[str, Any]
    evaluation: dict[str, Any]
    placement: dict[str, Any]
    steps: int
    seed: int
    start: Path | None = None

    def network_of(self, index: int) -> dict[str, Any]:
        """What one network is built from.

        Args:
            index: Counted from 0.

        Returns:
            The ``network`` section with the network's own settings laid on top.
        """
        own = self.networks[index] if self.networks else {}
        return _resolve_section("network", self.network, own, [])

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as ``config.yaml`` holds it."""
        plain: dict[str, Any] = yaml.safe_load(yaml.safe_dump(_listed(asdict(self)), sort_keys=False))
        return plain

    def with_(self, **changes: Any) -> "Settings":
        """Other settings, checked again.

        Args:
            **changes: Dotted names with "__" for the dot, such as ``method__count=3`` or ``seed=1``.

        Returns:
            The new settings.
        """
        return resolve(self.as_dict(), {name.replace("__", "."): value for name, value in changes.items()})[0]


def settings_of(
    recipe: str, overrides: Mapping[str, Any] | None = None, protocol: str | None = None, gpus: int | None = None
) -> tuple[Settings, tuple[str, ...]]:
    """Resolve a recipe.

    Args:
        recipe: A name or a file.
        overrides: Dotted name -> value; they win over the protocol, which wins over the recipe.
        protocol: "product", "paper", "code", or None for what the recipe says.
        gpus: With "code": how many the authors' code would have run on, which decides its effective rate and decay.

    Returns:
        The settings, and notes on what was dropped.
    """
    raw = read_recipe(recipe)
    protocols = _section(raw, "protocols")
    raw.pop("protocols", None)
    if gpus is not None and (protocol != "code" or not protocols):
        raise PeersegError(
            f"--gpus {gpus} says whose rate and decay --protocol code takes: give it with that, and a recipe of the paper"
        )
    given, laid = flat(raw), dict(overrides or {})
    if protocol is not None:
        method = str((given | laid).get("method.name"))
        laid = protocol_overrides(protocol, method) | _section(protocols, protocol) | laid
    known = given | laid | {"gpus": PUBLISHED_GPUS if gpus is None else gpus}
    return resolve(raw, laid | settle(given | laid, known))


def resolve(raw: Mapping[str, Any], overrides: Mapping[str, Any]) -> tuple[Settings, tuple[str, ...]]:
    """Check every section against what it names, with overrides laid on top.

    Args:
        raw: Sections as read.
        overrides: Dotted name -> value.

    Returns:
        The settings, and notes on what was dropped.
    """
    known = [field.name for field in fields(Settings)]
    for name in (*raw, *(name.split(".")[0] for name in overrides)):
        if name not in known:
            raise PeersegError(f"{name!r} is no setting; {nearest(name, known)}")
    bare = next((name for name in overrides if name in SECTIONS), None)
    if bare is not None:
        raise PeersegError(f"{bare!r} is a section: give its settings one by one, such as {bare}.key")
    whole = next((name for name in overrides if "." in name and name.split(".")[0] not in SECTIONS), None)
    if whole is not None:
        raise PeersegError(f"{whole!r} is no setting: {whole.split('.')[0]!r} has no parts")
    notes: list[str] = []
    sections = {}
    for section in SECTIONS:
        own = {name.split(".", 1)[1]: value for name, value in overrides.items() if name.startswith(f"{section}.")}
        sections[section] = _resolve_section(section, _section(raw, section), own, notes)
    settings = Settings(
        **sections,
        networks=_own_networks(overrides.get("networks", raw.get("networks")), sections["method"]["count"]),
        steps=_whole("steps", overrides.get("steps", raw.get("steps")), 1),
        seed=_whole("seed", overrides.get("seed", raw.get("seed", 0)), 0),
        start=_folder(overrides.get("start", raw.get("start"))),
    )
    for k in range(len(settings.networks)):
        settings.network_of(k)
    return settings, tuple(notes)


def _whole(name: str, value: object, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise PeersegError(f"{name} is {value!r}, expected a whole number of at least {least}")
    return value


def _folder(value: object) -> Path | None:
    if value is not None and not isinstance(value, (str, Path)):
        raise PeersegError(f"start is {value!r}, expected the folder of a run")
    return None if value is None else Path(value).expanduser().absolute()


def _own_networks(tables: object, count: int) -> tuple[dict[str, Any], ...]:
    if not tables:
        return ()
    if not isinstance(tables, (list, tuple)) or len(tables) != count or not all(isinstance(t, dict) for t in tables):
        raise PeersegError(f"networks is {tables!r}, expected a list of {count} tables (method.count), one a network")
    return tuple(dict(own) for own in tables)


def _resolve_section(
    section: str, given: Mapping[str, Any], own: Mapping[str, Any], notes: list[str]
) -> dict[str, Any]:
    from peerseg.experiment.checking import check_section, convert
    from peerseg.experiment.tables import FIXED, target

    merged = {**given, **own}
    head: dict[str, Any] = {}
    if section not in FIXED:
        head["name"] = merged.pop("name", None)
    if section == "method":
        head["count"] = convert("method.count", merged.pop("count", 1), int)
        if head["count"] < 1:
            raise PeersegError(f"method.count is {head['count']!r}, expected 1 or more")
    found = target(section, head.get("name"))
    supplied = SUPPLIED.get(section, ())
    if head.get("name") != given.get("name"):
        kin = section != "method" or {head["name"], given.get("name")} <= KIN
        merged = _carry_over(section, merged, own, _known(found) if kin else _known(found) & SHARED, notes)
    checked = head | check_section(section, merged, found, supplied, tuple(head))
    if section == "network" and isinstance(checked.get("weights"), str):
        from peerseg.networks.weights import is_file

        # A file is found from any folder then; a hub's set by its name.
        checked["weights"] = convert(
            "network.weights", checked["weights"], str | Path if is_file(checked["weights"]) else str
        )
    return checked


def _known(found: Any) -> set[str]:
    import inspect

    return set(inspect.signature(found).parameters)


def _carry_over(
    section: str, merged: Mapping[str, Any], own: Mapping[str, Any], known: set[str], notes: list[str]
) -> dict[str, Any]:
    """Another name was chosen: the recipe's keys that it does not know belonged to the old one."""
    dropped = [key for key in merged if key not in known and key not in own]
    if dropped:
        notes.append(
            f"{section}.name was changed, so the recipe's {section} settings {', '.join(dropped)} do not apply"
        )
    return {key: value for key, value in merged.items() if key not in dropped}


def _section(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = raw.get(name) or {}
    if not isinstance(section, dict):
        raise PeersegError(f"{name} is {section!r}, expected a table of settings")
    return section


def _listed(value: Any) -> Any:
    """Tuples as lists and paths as text, which is all that YAML knows."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, (list, tuple)) else value


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The settings in which two runs differ, without those that change no result.

    Args:
        one: From ``Settings.as_dict``.
        other: The same.

    Returns:
        Dotted names.
    """
    first, second = flat(one), flat(other)
    names = dict.fromkeys([*first, *second])
    return [name for name in names if first.get(name) != second.get(name) and name not in (*FREE, *PLACES)]


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Sections as dotted names.

    Args:
        settings: As read, or from ``Settings.as_dict``.

    Returns:
        Dotted name -> value.
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        parts = value.items() if name in SECTIONS and isinstance(value, dict) else ()
        found |= {f"{name}.{key}": item for key, item in parts} or {name: value}
    return found
