"""Class tables: what `classes.yaml` may say, what masks themselves show, and the message for every value that does not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image
import pytest
import yaml

from peerseg.data.classes import ClassTable, find_class_table, pack, read_class_table
from peerseg.data.files import read_stored_mask, write_mask
from peerseg.data.labels import IGNORE, UNLABELED, LabelSpace, spread_colors
from peerseg.errors import PeersegError

COLORS = "classes: {0: {name: road, color: '#804080'}, 1: {name: sky, color: [70, 130, 180]}}\n"


@pytest.fixture
def declared(tmp_path: Path) -> Any:
    """Read a class table from the text of a ``classes.yaml``."""

    def read(text: str) -> ClassTable:
        (tmp_path / "classes.yaml").write_text(text, encoding="utf8")
        return read_class_table(tmp_path / "classes.yaml")

    return read


def save(path: Path, stored: npt.NDArray[Any]) -> Path:
    PIL.Image.fromarray(stored).save(path)
    return path


def test_a_list_names_the_values_from_zero(declared: Any) -> None:
    table = declared("classes: [background, crack]")
    assert table.space.names == ("background", "crack")
    assert table.space.colors == spread_colors(2)
    stored = np.array([[0, 1], [UNLABELED, IGNORE]], np.uint8)
    assert np.array_equal(table.translate(stored, Path("m.png")), stored)


def test_a_table_names_the_values_it_gives(declared: Any) -> None:
    table = declared("classes: {255: crack, 0: background, 1000: joint}")
    assert table.space.names == ("background", "crack", "joint")
    translated = table.translate(np.array([[1000, 255, 0]], np.uint16), Path("m.png"))
    assert translated.dtype == np.uint8
    assert translated.tolist() == [[2, 1, 0]]


def test_states_have_the_values_they_were_given(declared: Any) -> None:
    table = declared("classes: {1: a, 2: b}\nignore: 0\nunlabeled: 9")
    assert table.translate(np.array([[0, 1, 2, 9]], np.uint8), Path("m.png")).tolist() == [[IGNORE, 0, 1, UNLABELED]]
    with pytest.raises(PeersegError, match="holds the value 255 on 1 pixels"):
        table.translate(np.array([[255, 1]], np.uint8), Path("m.png"))


def test_colors_become_classes_and_states(declared: Any) -> None:
    table = declared(COLORS + "ignore: '#000000'\nunlabeled: [255, 255, 255]")
    assert table.space.colors == ((128, 64, 128), (70, 130, 180))
    stored = np.array([[[128, 64, 128], [70, 130, 180], [0, 0, 0], [255, 255, 255]]], np.uint8)
    assert table.translate(stored, Path("m.png")).tolist() == [[0, 1, IGNORE, UNLABELED]]


def test_masks_with_numbers_are_read_beside_a_color_table(declared: Any) -> None:
    assert declared(COLORS).translate(np.array([[1, 0, 255]], np.uint8), Path("m.png")).tolist() == [[1, 0, IGNORE]]


def test_pack_tells_all_colors_apart() -> None:
    assert pack(np.array([[[1, 2, 3]], [[3, 2, 1]]], np.uint8)).tolist() == [[0x010203], [0x030201]]


def test_a_value_outside_the_classes_is_named_with_its_count_file_and_cause(declared: Any) -> None:
    table = declared("classes: [a, b]")
    stored = np.array([[0, 1, 7], [7, 9, 7]], np.uint8)
    expected = (
        r"'deep/m\.png' holds the value 7 on 3 pixels, expected one of the 2 classes.*likely cause: a gray picture"
    )
    with pytest.raises(PeersegError, match=expected):
        table.translate(stored, Path("deep/m.png"))


def test_an_undeclared_255_is_called_a_binary_mask(declared: Any) -> None:
    table = declared("classes: [a, b]\nignore: null")
    with pytest.raises(PeersegError, match=r"the value 255 on 1 pixels.*a 0/255 mask \(declare it in classes\.yaml"):
        table.translate(np.array([[0, 255]], np.uint8), Path("m.png"))


def test_a_color_outside_the_table_is_named(declared: Any) -> None:
    stored = np.array([[[128, 64, 128], [1, 2, 3]]], np.uint8)
    with pytest.raises(
        PeersegError, match=r"holds the color '#010203' on 1 pixels.*likely cause: a class without its color"
    ):
        declared(COLORS).translate(stored, Path("m.png"))


def test_a_color_mask_needs_a_color_table(declared: Any) -> None:
    with pytest.raises(PeersegError, match=r"'m\.png' is in color, expected class numbers: give every class its color"):
        declared("classes: [a, b]").translate(np.zeros((2, 2, 3), np.uint8), Path("m.png"))


def test_fractions_are_no_classes(declared: Any) -> None:
    with pytest.raises(PeersegError, match=r"'m\.npy' holds"):
        declared("classes: [a, b]").translate(np.array([[0.2, 0.9]], np.float32), Path("m.npy"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("classes: [a, b", "is no YAML .*write it like"),
        ("", "declares no classes, expected a list or a table"),
        ("- a\n- b", "declares no classes"),
        ("classes: 3", "declares no classes"),
        ("classes: [a, b]\nclases: 1", "unknown key 'clases', expected classes, ignore, unlabeled"),
        (
            "classes: {0: {name: a, color: '#000000'}, 1: b}",
            "gives a color to some classes only: give one to every class or to none",
        ),
        ("classes: {a: 0, b: 1}", "has the class key 'a', expected the value in the masks"),
        ("classes: {-1: a, 1: b}", "has the class key -1"),
        ("classes: {true: a, 1.5: b}", "has the class key"),
        ("classes: {0: {name: a, color: red}, 1: {name: b, color: blue}}", "has the color 'red', expected '#rrggbb'"),
        ("classes: {0: {name: a, color: [0, 0, 256]}, 1: {name: b, color: [0, 0, 1]}}", r"has the color \[0, 0, 256\]"),
        ("classes: [a, b]\nignore: white", "has the color 'white'"),
        ("classes: [a, b]\nignore: 1", "declares 1 as a class and as ignore: decide for one"),
        ("classes: {0: a, 9: b}\nunlabeled: 9", "declares 9 as a class and as unlabeled: decide for one"),
        ("classes: [yes, no]", "describes class 0 as True, expected a name"),
        ("classes: {0: {color: '#000000'}, 1: b}", "describes class 0 as .*expected a name"),
        ("classes: {0: , 1: b}", "describes class 0 as None"),
        ("classes: [a]", "1 classes were given, expected 2 to 254"),
        ("classes: [a, a]", "repeat: give every class its own name"),
        (f"classes: [{', '.join(f'c{k}' for k in range(255))}]", "255 classes were given, expected 2 to 254"),
        ("classes: {0: {name: a, colour: '#000000'}, 1: b}", "'colour'"),
        (
            "classes: {0: {name: a, color: '#000000'}, 1: {name: b, color: '#000000'}}",
            "#000000|repeat|same color",
        ),
    ],
)
def test_a_wrong_table_is_refused_in_one_line(declared: Any, text: str, message: str) -> None:
    with pytest.raises(PeersegError, match=message) as caught:
        declared(text)
    assert "\n" not in str(caught.value)


def test_a_table_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "classes.yaml").write_bytes("classes: [straße, b]".encode("latin1"))
    with pytest.raises(PeersegError, match=r"classes\.yaml"):
        read_class_table(tmp_path / "classes.yaml")


def test_classes_are_found_in_the_masks(tmp_path: Path) -> None:
    masks = [
        save(tmp_path / "a.png", np.array([[0, 3]], np.uint8)),
        save(tmp_path / "b.png", np.array([[1, UNLABELED, IGNORE]], np.uint8)),
    ]
    table = find_class_table(masks)
    assert table.space.names == ("class 0", "class 1", "class 2", "class 3")
    assert table.space.colors == spread_colors(4)
    assert table.translate(read_stored_mask(masks[1]), masks[1]).tolist() == [[1, UNLABELED, IGNORE]]


def test_found_classes_have_the_colors_of_the_palette(tmp_path: Path) -> None:
    space = LabelSpace(("a", "b"), ((1, 2, 3), (4, 5, 6)))
    write_mask(tmp_path / "a.png", np.array([[0, 1]], np.uint8), space)
    assert find_class_table([tmp_path / "a.png"]).space.colors == space.colors


def test_a_palette_shorter_than_the_classes_is_not_used(tmp_path: Path) -> None:
    image = PIL.Image.fromarray(np.array([[0, 1]], np.uint8))
    image.putpalette([1, 2, 3, 4, 5, 6])
    image.save(tmp_path / "a.png")
    masks = [tmp_path / "a.png", save(tmp_path / "b.png", np.array([[2]], np.uint8))]
    assert find_class_table(masks).space.colors == spread_colors(3)


def test_classes_cannot_be_found_in_colors(tmp_path: Path) -> None:
    mask = save(tmp_path / "a.png", np.zeros((2, 2, 3), np.uint8))
    with pytest.raises(PeersegError, match=r"a\.png' is in color, expected class numbers: write a classes\.yaml"):
        find_class_table([mask])


@pytest.mark.parametrize(
    ("values", "shown"),
    [([0, 255], r"\[0, 255\]"), ([0], r"\[0\]"), ([254, 255], r"\[254, 255\]"), ([1, 254], r"\[1, 254\]")],
)
def test_masks_of_less_than_two_classes_are_refused(tmp_path: Path, values: list[int], shown: str) -> None:
    """Masks of 0 and 255 alone are most likely binary: never quietly one class and ignore."""
    mask = save(tmp_path / "a.png", np.array([values], np.uint8))
    with pytest.raises(PeersegError, match=f"hold only the values {shown}.*if 255 is a class, write a classes.yaml"):
        find_class_table([mask])


def test_more_than_254_found_classes_are_refused(tmp_path: Path) -> None:
    mask = save(tmp_path / "a.png", np.arange(300, dtype=np.uint16)[None])
    with pytest.raises(PeersegError, match="300 classes were given, expected 2 to 254"):
        find_class_table([mask])


@pytest.mark.parametrize("values", [[0, 4], [0, 128], [0, 999, 255]])
def test_values_with_wide_gaps_need_names(tmp_path: Path, values: list[int]) -> None:
    mask = save(tmp_path / "a.png", np.array([values], np.uint16))
    with pytest.raises(PeersegError, match=r"hold only the values .*leave most class numbers .*write a classes\.yaml"):
        find_class_table([mask])


def test_a_few_classes_may_be_missing_from_the_masks(tmp_path: Path) -> None:
    mask = save(tmp_path / "a.png", np.array([[0, 2]], np.uint8))
    assert len(find_class_table([mask]).space) == 3


@pytest.mark.parametrize(
    ("states", "ignored", "open_"),
    [("ignore: 254", [254], []), ("unlabeled: 255", [], [255]), ("{ignore: 254, unlabeled: 255}", [254], [255])],
)
def test_a_value_given_to_one_state_is_no_longer_the_others(
    tmp_path: Path, states: str, ignored: list[int], open_: list[int]
) -> None:
    declared = {"classes": ["a", "b"]} | yaml.safe_load(states)
    (tmp_path / "classes.yaml").write_text(yaml.safe_dump(declared))
    values = read_class_table(tmp_path / "classes.yaml").values
    assert [value for value, meaning in values.items() if meaning == IGNORE] == ignored
    assert [value for value, meaning in values.items() if meaning == UNLABELED] == open_


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("classes: [a, b]\nignore: 2\nunlabeled: 2", "declares 2 as ignore and as unlabeled: decide for one"),
        ("classes: {0: a, 1: b, 1: c}", "is no YAML .*1 stands twice"),
        ("classes: [2024-13-45, b]", "is no YAML"),
    ],
)
def test_what_would_be_settled_in_silence_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "classes.yaml").write_text(text)
    with pytest.raises(PeersegError, match=words):
        read_class_table(tmp_path / "classes.yaml")


def test_a_folder_is_no_class_table(tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match="is no YAML"):
        read_class_table(tmp_path)
