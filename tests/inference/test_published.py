"""Evaluation as published, against a transcription in numpy; and where it differs from our own."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch

from peerseg.errors import PeersegError
from peerseg.inference import Protocol, predict
from peerseg.inference.predict import gather
from peerseg.inference.protocol import window_starts
from peerseg.inference.voting import answer, disagreement
from placed import Placed, normalized, picture, softmax

WINDOW = 12
PUBLISHED = Protocol(window=WINDOW, published=True)
Floats = npt.NDArray[np.float64]
# Each network has its own gain and leaning, so that logits, probabilities and their fusions choose differently.
LEANINGS = ((0.2137, 1.013), (-0.3071, 2.017), (0.1093, -1.019))


def networks() -> list[Placed]:
    return [Placed(tilt=tilt, gain=gain) for tilt, gain in LEANINGS]


def logits_of(shown: Floats, tilt: float, gain: float) -> Floats:
    rows, columns = np.mgrid[: shown.shape[1], : shown.shape[2]]
    return gain * shown + tilt * np.stack([rows, columns, 0 * rows])


def transcribed(image: npt.NDArray[np.uint8], fuse: Callable[[list[Floats]], Floats]) -> npt.NDArray[np.int64]:
    """Method by method: pad, slide, fuse the scores of a window, sum, cut the margins off, argmax."""
    height, width = image.shape[:2]
    x = normalized(image)
    above, left = (max(WINDOW - side, 0) // 2 for side in (height, width))
    below, right = (max(WINDOW - height, 0) - above, max(WINDOW - width, 0) - left)
    x = np.pad(x, ((0, 0), (above, below), (left, right)))
    stride = math.ceil(WINDOW * 2 / 3)
    total = np.zeros_like(x)
    for row in range(math.ceil((x.shape[1] - WINDOW) / stride) + 1):
        for column in range(math.ceil((x.shape[2] - WINDOW) / stride) + 1):
            top, start = min(row * stride, x.shape[1] - WINDOW), min(column * stride, x.shape[2] - WINDOW)
            place = (slice(None), slice(top, top + WINDOW), slice(start, start + WINDOW))
            total[place] += fuse([logits_of(x[place], *leaning) for leaning in LEANINGS])
    return np.asarray(total[:, above : above + height, left : left + width].argmax(axis=0))


RULES: dict[str, Callable[[list[Floats]], Floats]] = {
    "single": lambda logits: logits[0],
    "net2": lambda logits: logits[1],
    "net3": lambda logits: logits[2],
    "mc": lambda logits: np.max([softmax(own) for own in logits], axis=0),
    "sv": lambda logits: np.sum([softmax(own) for own in logits], axis=0),
}


@pytest.mark.parametrize("size", [(7, 9), (12, 12), (5, 12), (20, 27), (33, 13), (9, 30)])
@pytest.mark.parametrize("rule", RULES)
def test_votes_are_those_of_the_authors(size: tuple[int, int], rule: str) -> None:
    image = picture(size)
    evidence = gather(networks(), image, PUBLISHED)
    found = answer(evidence, rule)[0].numpy()
    np.testing.assert_array_equal(found, transcribed(image, RULES[rule]))


def test_an_image_that_fits_is_one_window_padded_on_all_sides() -> None:
    network, image = Placed(), picture((7, 8))
    gather([network], image, PUBLISHED)
    (shown,) = network.shown
    assert shown.shape == (1, 3, WINDOW, WINDOW)
    assert shown[..., :2, :].abs().sum() == shown[..., 9:, :].abs().sum() == 0, "the mean color, half on either side"
    assert shown[..., :2].abs().sum() == shown[..., 10:].abs().sum() == 0
    np.testing.assert_allclose(shown[0, :, 2:9, 2:10].numpy(), normalized(image), atol=1e-5)


def test_a_city_is_eight_windows_and_a_voc_image_one() -> None:
    third = Protocol(window=800, published=True).overlap
    assert window_starts(1024, 800, third) == [0, 224]
    assert window_starts(2048, 800, third) == [0, 534, 1068, 1248]
    assert window_starts(512, 512, third) == [0]


def test_it_is_not_our_own_protocol() -> None:
    image = picture((20, 27))
    own = Protocol(window=WINDOW)
    for rule in ("single", "mc"):
        ours, theirs = (answer(gather(networks(), image, way), rule) for way in (own, PUBLISHED))
        assert not torch.equal(ours, theirs), rule


def test_a_prediction_has_all_its_maps() -> None:
    image = picture((20, 27))
    found = predict(networks(), image, vote="single", protocol=PUBLISHED)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-5)
    chosen = np.take_along_axis(found.probabilities.mean(axis=0), found.labels[None].astype(int), 0)[0]
    np.testing.assert_allclose(found.confidence, chosen, atol=1e-6)
    single, second, third = (transcribed(image, RULES[rule]) for rule in ("single", "net2", "net3"))
    np.testing.assert_array_equal(found.disagreement, (single != second) | (single != third))
    assert disagreement(gather(networks(), image, PUBLISHED)).any()


def test_hard_votes_are_of_the_labels_that_networks_give_alone() -> None:
    image = picture((20, 27))
    alone = np.stack([transcribed(image, RULES[rule]) for rule in ("single", "net2", "net3")])
    found = answer(gather(networks(), image, PUBLISHED), "hv")[0].numpy()
    counts = np.stack([(alone == k).sum(axis=0) for k in range(3)])
    settled = counts.max(axis=0) > 1
    assert settled.any()
    np.testing.assert_array_equal(found[settled], counts.argmax(axis=0)[settled])


@pytest.mark.parametrize("more", [{"window": None}, {"flip": True}, {"scales": (1.0, 1.5)}])
def test_published_shows_an_image_once_in_windows(more: dict[str, object]) -> None:
    keywords = {"window": 8, "published": True} | more
    with pytest.raises(
        PeersegError, match=r"evaluation.published shows an image once, in windows: set evaluation.window"
    ):
        Protocol(**keywords)  # type: ignore[arg-type]


def test_networks_are_left_as_they_were_even_when_a_pass_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Placed().train()
    monkeypatch.setattr(network, "classify", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        gather([network], picture((8, 8)), PUBLISHED)
    assert network.training
