"""Class tables of your own data: ``classes.yaml``, or what the masks themselves show."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from peerseg.data.files import mask_palette, read_stored_mask
from peerseg.data.labels import IGNORE, UNLABELED, Color, LabelSpace, Mask, spread_colors, value_table
from peerseg.errors import PeersegError

EXAMPLE = "classes: {0: background, 255: crack}"


@dataclass(frozen=True)
class ClassTable:
    """How stored masks become class indices.

    Args:
        space: The classes.
        values: Stored value -> class index, 255 or 254; for masks that hold numbers.
        colors: Packed RGB -> the same; for masks that hold colors, empty where no colors were declared.
    """

    space: LabelSpace
    values: Mapping[int, int]
    colors: Mapping[int, int]

    def translate(self, stored: npt.NDArray[Any], path: Path) -> Mask:
        """Turn a stored mask into class indices.

        Args:
            stored: (H, W) integers or (H, W, 3) colors.
            path: The file, for the message.

        Returns:
            (H, W) uint8.
        """
        if stored.ndim == 3 and not self.colors:
            raise PeersegError(
                f"{str(path)!r} is in color, expected class numbers: give every class its color in classes.yaml, "
                "such as `classes: {0: {name: road, color: '#804080'}}`"
            )
        if stored.dtype == np.uint8 and stored.ndim == 2:
            return self._look_up(stored, path)
        table = self.values if stored.ndim == 2 else self.colors
        numbers = whole_numbers(stored, path) if stored.ndim == 2 else pack(stored)
        keys = np.array(sorted(table), np.int64)
        places = np.searchsorted(keys, numbers).clip(max=len(keys) - 1)
        strange = numbers[keys[places] != numbers]
        if strange.size:
            raise PeersegError(_unknown_value(strange, stored.ndim == 3, path, self))
        translated: Mask = np.array([table[key] for key in keys.tolist()], np.uint8)[places]
        return translated

    def _look_up(self, stored: npt.NDArray[np.uint8], path: Path) -> Mask:
        """The same for bytes, which are what nearly every mask holds, several times as fast."""
        table, known = np.zeros(256, np.uint8), np.zeros(256, bool)
        for value, index in self.values.items():
            if value < 256:
                table[value], known[value] = index, True
        values = np.flatnonzero(np.bincount(stored.ravel(), minlength=256))
        if not known[values].all():
            raise PeersegError(_unknown_value(stored[~known[stored]].astype(np.int64), False, path, self))
        translated: Mask = table[stored]
        return translated


def whole_numbers(stored: npt.NDArray[Any], path: Path) -> npt.NDArray[np.int64]:
    """The values of a mask, refusing what would have to be rounded.

    Args:
        stored: (H, W) as read.
        path: The file, for the message.

    Returns:
        The same values.
    """
    if stored.dtype.kind not in "biu":
        raise PeersegError(
            f"{str(path)!r} holds {stored.dtype} values, expected whole class numbers: save it as integers"
        )
    return stored.astype(np.int64)


def pack(colors: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Colors as single numbers.

    Args:
        colors: (..., 3) RGB.

    Returns:
        (...) numbers, red in the highest byte.
    """
    return colors[..., :3].astype(np.int64) @ np.array([1 << 16, 1 << 8, 1], np.int64)


def pack_colors(colors: Sequence[Color], *, ignore: Color) -> dict[int, int]:
    """What each color of a stored mask becomes.

    Args:
        colors: Of class 0, 1, 2 ...
        ignore: Of pixels that are never trained on.

    Returns:
        Packed RGB -> class index or ``IGNORE``.
    """
    return value_table([_packed(color) for color in colors], _packed(ignore), None)


class _OnceOnly(yaml.SafeLoader):
    """YAML in which no key stands twice; plain YAML keeps the last one in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A table, refused where a key repeats."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise yaml.YAMLError(f"{twice!r} stands twice")
        return dict(super().construct_mapping(node, deep))


def read_class_table(path: Path) -> ClassTable:
    """Read ``classes.yaml``.

    Args:
        path: The file. ``classes`` is a list of names, or a mapping from the value in the masks to a name or to
            ``{name, color}``; ``ignore`` and ``unlabeled`` name the values (or colors) of those two states.

    Returns:
        The class table.
    """
    try:
        declared = yaml.load(path.read_text(encoding="utf-8-sig"), _OnceOnly)
    except (yaml.YAMLError, ValueError, OSError) as error:  # impossible dates and other encodings are a ValueError
        raise PeersegError(
            f"{str(path)!r} is no YAML ({error}): write it like `{EXAMPLE}`".replace("\n", " ")
        ) from error
    if not isinstance(declared, dict) or not isinstance(declared.get("classes"), (dict, list)):
        raise PeersegError(f"{str(path)!r} declares no classes, expected a list or a table: write it like `{EXAMPLE}`")
    unknown = set(declared) - {"classes", "ignore", "unlabeled"}
    if unknown:
        raise PeersegError(
            f"{str(path)!r} has the unknown key {sorted(unknown)[0]!r}, expected classes, ignore, unlabeled"
        )
    classes = declared["classes"]
    table: dict[Any, Any] = dict(enumerate(classes)) if isinstance(classes, list) else classes
    values = sorted(_number(value, path) for value in table)
    entries = [_entry(table[value], value, path) for value in values]
    colors = [_color(entry["color"], path) for entry in entries if "color" in entry]
    if colors and len(colors) < len(entries):
        raise PeersegError(f"{str(path)!r} gives a color to some classes only: give one to every class or to none")
    space = LabelSpace(tuple(entry["name"] for entry in entries), tuple(colors) or spread_colors(len(entries)))
    # A value that is given to one state is no longer the other's by default.
    ignore = declared.get("ignore", IGNORE if declared.get("unlabeled") != IGNORE else None)
    unlabeled = declared.get("unlabeled", UNLABELED if ignore != UNLABELED else None)
    if ignore is not None and ignore == unlabeled:
        raise PeersegError(f"{str(path)!r} declares {ignore!r} as ignore and as unlabeled: decide for one")
    for state in ("ignore", "unlabeled"):
        if declared.get(state) is not None and declared[state] in values:
            raise PeersegError(f"{str(path)!r} declares {declared[state]!r} as a class and as {state}: decide for one")
    numbers = [state if isinstance(state, int) else None for state in (ignore, unlabeled)]
    packed = [_packed(_color(state, path)) if isinstance(state, (str, list)) else None for state in (ignore, unlabeled)]
    shades = [*(_packed(color) for color in colors), *(shade for shade in packed if shade is not None)]
    twice = next((shade for shade in shades if shades.count(shade) > 1), None)
    if twice is not None:
        raise PeersegError(
            f"{str(path)!r} gives the color '#{twice:06x}' twice: give every class and state its own color"
        )
    by_color = value_table([_packed(color) for color in colors], *packed) if colors else {}
    return ClassTable(space, value_table(values, *numbers), by_color)


def find_class_table(masks: Iterable[Path]) -> ClassTable:
    """Find the classes in the masks themselves.

    Args:
        masks: Every mask file.

    Returns:
        Classes 0 up to the highest value found, named by their number.
    """
    found: set[int] = set()
    palette: list[Color] | None = None
    for path in masks:
        stored = read_stored_mask(path)
        if stored.ndim == 3:
            raise PeersegError(
                f"{str(path)!r} is in color, expected class numbers: write a classes.yaml that gives every class its color"
            )
        found |= set(np.unique(whole_numbers(stored, path)).tolist())
        palette = palette or mask_palette(path)
    classes = found - {IGNORE, UNLABELED}
    if len(classes) > 1 and 2 * len(classes) <= max(classes):
        raise PeersegError(
            f"the masks hold only the values {sorted(found)}, which leave most class numbers below {max(classes)} out: "
            f"write a classes.yaml that names the values, such as `{EXAMPLE}`"
        )
    if len(classes) < 2:
        raise PeersegError(
            f"the masks hold only the values {sorted(found)}, expected at least two classes besides 255 (ignore) and 254 "
            f"(unlabeled): if 255 is a class, write a classes.yaml such as `{EXAMPLE}`"
        )
    count = max(classes) + 1
    colors = tuple(palette[:count]) if palette and len(palette) >= count else spread_colors(min(count, 256))
    return ClassTable(LabelSpace(tuple(f"class {k}" for k in range(count)), colors), value_table(range(count)), {})


def _unknown_value(strange: npt.NDArray[np.int64], color: bool, path: Path, table: ClassTable) -> str:
    values, counts = np.unique(strange, return_counts=True)
    value, count = int(values[0]), int(counts[0])
    shown = f"the color '#{value:06x}'" if color else f"the value {value}"
    cause = "a gray picture of a color mask, or a class that classes.yaml lacks"
    if color:
        cause = "a class without its color in classes.yaml, or a mask saved as JPEG or with smooth edges"
    elif value == IGNORE:
        cause = f"a 0/255 mask (declare it in classes.yaml: `{EXAMPLE}`)"
    return (
        f"{str(path)!r} holds {shown} on {count} pixels, expected one of the {len(table.space)} classes, ignore or "
        f"unlabeled; likely cause: {cause}"
    )


def _number(value: object, path: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise PeersegError(f"{str(path)!r} has the class key {value!r}, expected the value in the masks: `{EXAMPLE}`")
    return value


def _entry(value: object, number: int, path: Path) -> dict[str, Any]:
    entry = value if isinstance(value, dict) else {"name": value}
    if isinstance(entry.get("name"), (int, float)) and not isinstance(entry["name"], bool):
        entry = entry | {"name": str(entry["name"])}
    if not isinstance(entry.get("name"), str) or set(entry) - {"name", "color"}:
        raise PeersegError(
            f"{str(path)!r} describes class {number} as {value!r}, expected a name (in quotes if it is yes or no) or "
            "{name: road, color: '#804080'}"
        )
    return entry


def _color(value: object, path: Path) -> Color:
    if isinstance(value, str) and re.fullmatch("#[0-9a-fA-F]{6}", value):
        red, green, blue = bytes.fromhex(value[1:])
        return red, green, blue
    if isinstance(value, list) and len(value) == 3 and all(isinstance(part, int) and 0 <= part < 256 for part in value):
        return value[0], value[1], value[2]
    raise PeersegError(f"{str(path)!r} has the color {value!r}, expected '#rrggbb' in quotes or [red, green, blue]")


def _packed(color: Color) -> int:
    return (color[0] << 16) | (color[1] << 8) | color[2]
