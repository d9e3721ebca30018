"""Keywords against signatures: names, types, defaults, and the words for what was expected."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from peerseg.errors import PeersegError
from peerseg.experiment.checking import check_section, convert, spell


class Oven:
    """Something to configure."""

    def __init__(
        self, pans: int, *, heat: float, fan: bool = False, mode: Literal["bake", "grill"] = "bake", note: Any = None
    ) -> None:
        self.pans, self.heat, self.fan, self.mode, self.note = pans, heat, fan, mode, note


def bare(width: int = 3, rest=None) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """A function that says no type of its second parameter."""


def test_a_section_is_filled_in_and_in_the_signature_s_order() -> None:
    checked = check_section("oven", {"mode": "grill", "heat": 200}, Oven, ("pans",))

    assert list(checked.items()) == [("heat", 200.0), ("fan", False), ("mode", "grill"), ("note", None)]
    assert type(checked["heat"]) is float


def test_a_parameter_without_a_type_takes_anything() -> None:
    assert check_section("thing", {"rest": {"a": [1]}}, bare) == {"width": 3, "rest": {"a": [1]}}


@pytest.mark.parametrize("key", ["haet", "pans"])
def test_an_unknown_setting_names_the_nearest(key: str) -> None:
    with pytest.raises(
        PeersegError, match=rf"oven.{key} is no setting of Oven; (did you mean 'heat'|known: fan, heat)"
    ):
        check_section("oven", {key: 1, "heat": 3.0}, Oven, ("pans",))


def test_a_missing_setting_says_what_it_is_and_how_to_give_it() -> None:
    with pytest.raises(PeersegError, match=r"oven.heat is missing, expected a number: give --oven.heat"):
        check_section("oven", {"pans": 1}, Oven)


@pytest.mark.parametrize(
    ("value", "hint", "wanted"),
    [
        (3, int, 3),
        (3, float, 3.0),
        ("1e-3", float, 0.001),
        (True, bool, True),
        ("a", str, "a"),
        (None, int | None, None),
        (4, int | None, 4),
        (3, int | float, 3),
        (3, float | int, 3),
        (0.5, int | float, 0.5),
        ([1, 2], tuple[float, ...], (1.0, 2.0)),
        ([], tuple[float, ...], ()),
        ([1, 2], Sequence[float], (1.0, 2.0)),
        ([1, 2], list[int], (1, 2)),
        ([64, 32], int | tuple[int, int], (64, 32)),
        (64, int | tuple[int, int], 64),
        ("grill", Literal["bake", "grill"], "grill"),
        ({"a": 1}, Mapping[str, Any], {"a": 1}),
        ({"a": 1}, dict[str, int], {"a": 1}),
        (object, Any, object),
    ],
)
def test_values_that_fit(value: Any, hint: Any, wanted: Any) -> None:
    found = convert("x", value, hint)

    assert found == wanted
    assert type(found) is type(wanted)


def test_a_path_is_the_same_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")

    assert convert("data.root", "a/b", str | Path) == str(tmp_path / "a" / "b")
    assert convert("data.root", "~/photos", str | Path) == "/home/me/photos"
    assert convert("data.lists", "/a", str | Path | None) == "/a"
    assert convert("data.lists", None, str | Path | None) is None


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (3.0, int, "a whole number"),
        ("3", int, "a whole number"),
        (True, int, "a whole number"),
        (False, float, "a number"),
        ("fast", float, "a number"),
        (1, bool, "true or false"),
        ("yes", bool, "true or false"),
        (None, str, "text"),
        (3.5, str | Path, "text"),
        (0.5, int | None, "a whole number or null"),
        ([1, "a"], tuple[float, ...], "a list of a number"),
        (1.0, tuple[float, ...], "a list of a number"),
        ("12", tuple[float, ...], "a list of a number"),
        ([64], int | tuple[int, int], "a whole number or a list of a whole number"),
        ([1, 2, 3], tuple[int, int], "a list of a whole number"),
        ("roast", Literal["bake", "grill"], "one of bake, grill"),
        ([1], Mapping[str, Any], "a table"),
    ],
)
def test_values_that_do_not_fit_say_what_was_expected(value: Any, hint: Any, expected: str) -> None:
    with pytest.raises(PeersegError) as caught:
        convert("oven.heat", value, hint)
    assert str(caught.value) == f"oven.heat is {value!r}, expected {expected}"


@pytest.mark.parametrize("number", ["nan", "inf", ".nan"])
def test_what_is_no_number_is_no_number(number: str) -> None:
    with pytest.raises(PeersegError, match="expected a number"):
        convert("optimizer.rate", number, float)


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (int, "a whole number"),
        (float | None, "a number or null"),
        (str | Path, "text"),
        (Literal["a", "b"], "one of a, b"),
        (list[bool], "a list of true or false"),
        (dict[str, int], "a table"),
        (Callable[[], None] | None, "text or null"),
    ],
)
def test_types_in_words(hint: Any, words: str) -> None:
    assert spell(hint) == words
