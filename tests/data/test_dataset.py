"""The data set's interface, and its view without masks."""

import numpy as np
import pytest

from peerseg.data.dataset import Image, SegmentationDataset, Split, UnlabeledImages
from peerseg.data.labels import Mask, labels_of


class Gray(SegmentationDataset):
    """Two gray pictures; asking for a mask is counted."""

    def __init__(self) -> None:
        self.label_space = labels_of(["a", "b"])
        self.ids = ("one", "two")
        self.asked: list[str] = []

    def image(self, id: str) -> Image:
        return np.full((4, 6, 1), self.ids.index(id), np.uint8)

    def mask(self, id: str) -> Mask | None:
        self.asked.append(id)
        return None

    def split(self) -> Split:
        return Split(("one",), ("two",), ())


def test_size_comes_from_the_image_where_nothing_is_faster() -> None:
    assert Gray().size("one") == (4, 6)


def test_a_data_set_without_files_names_the_id() -> None:
    assert Gray().file("two") == "two"


def test_notes_are_empty_unless_something_was_decided() -> None:
    assert tuple(Gray().notes) == ()


@pytest.mark.parametrize("missing", ["image", "mask", "split"])
def test_a_data_set_lacking_a_part_cannot_be_made(missing: str) -> None:
    parts = {name: getattr(Gray, name) for name in ("image", "mask", "split") if name != missing}
    partial = type("Partial", (SegmentationDataset,), parts)
    with pytest.raises(TypeError, match=f"abstract.*{missing}"):
        partial()


def test_unlabeled_images_offer_no_mask() -> None:
    view = UnlabeledImages(Gray(), ("two",))
    assert not hasattr(view, "mask")
    assert not any(isinstance(value, SegmentationDataset) for value in vars(view).values())


def test_unlabeled_images_are_those_of_the_data_set() -> None:
    dataset = Gray()
    view = UnlabeledImages(dataset, ("two",))
    assert tuple(view.ids) == ("two",)
    assert np.array_equal(view.image("two"), dataset.image("two"))
    assert view.file("two") == "two"
    assert dataset.asked == []
