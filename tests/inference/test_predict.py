"""Prediction: windows that cover, overlaps that are averaged, flips, scales, and sizes no stride divides."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from peerseg.errors import PeersegError
from peerseg.inference import Protocol, predict
from peerseg.inference.predict import gather
from peerseg.inference.protocol import WHOLE, window_starts
from placed import Placed, normalized, picture, softmax


def _probabilities(networks: list["Placed"], image: npt.NDArray[np.uint8], protocol: Protocol = WHOLE) -> Tensor:
    """(n, C, H, W) of one image."""
    return gather(networks, image, protocol).probabilities[:, 0]


def tilted(shown: npt.NDArray[np.float64], tilt: float) -> npt.NDArray[np.float64]:
    """What ``Placed`` answers, in numpy."""
    rows, columns = np.mgrid[: shown.shape[1], : shown.shape[2]]
    return softmax(shown + tilt * np.stack([rows, columns, 0 * rows]))


@pytest.mark.parametrize("size", [(16, 24), (17, 23), (1, 1), (9, 8)])
def test_a_whole_image_is_padded_to_the_stride_and_cropped(size: tuple[int, int]) -> None:
    network, image = Placed(tilt=0.1), picture(size)
    found = _probabilities([network], image)
    height, width = (-(-side // 8) * 8 for side in size)

    assert [tuple(x.shape) for x in network.shown] == [(1, 3, height, width)]
    assert network.shown[0][..., size[0] :, :].abs().sum() == 0, "padding is the mean color"
    assert network.shown[0][..., :, size[1] :].abs().sum() == 0
    assert found.shape == (1, 3, *size)
    np.testing.assert_allclose(found[0].numpy(), tilted(normalized(image), 0.1), atol=1e-5)


@pytest.mark.parametrize("length", [5, 8, 9, 20, 23, 64])
@pytest.mark.parametrize("window", [8, 9])
@pytest.mark.parametrize("overlap", [0.0, 1 / 3, 0.5, 0.9])
def test_windows_cover_a_side_and_the_last_is_moved_inside(length: int, window: int, overlap: float) -> None:
    starts = window_starts(length, window, overlap)
    seen = np.zeros(length, np.int64)
    for start in starts:
        seen[start : start + window] += 1

    assert seen.min() >= 1
    assert starts[0] == 0
    assert starts[-1] == max(0, length - window)
    assert starts == sorted(set(starts))
    assert all(later - start <= max(1, np.ceil(window * (1 - overlap))) for start, later in pairwise(starts))


def test_published_windows() -> None:
    # Two thirds of a window further each time.
    assert window_starts(1024, 768, 1 / 3) == [0, 256]
    assert window_starts(2048, 768, 1 / 3) == [0, 512, 1024, 1280]


@pytest.mark.parametrize("size", [(20, 24), (13, 30), (7, 20)])
@pytest.mark.parametrize("overlap", [0.0, 1 / 3])
def test_windows_are_averaged_where_they_overlap(size: tuple[int, int], overlap: float) -> None:
    network, image = Placed(tilt=0.3), picture(size)
    found = _probabilities([network], image, Protocol(window=10, overlap=overlap))[0].numpy()
    shown, stride = normalized(image), 10 if overlap == 0 else 7
    total, count = np.zeros((3, *size)), np.zeros(size)
    tops, lefts = (sorted({max(0, min(k * stride, side - 10)) for k in range(9)}) for side in size)
    for top in tops:
        for left in lefts:
            part = shown[:, top : top + 10, left : left + 10]
            total[:, top : top + 10, left : left + 10] += tilted(part, 0.3)
            count[top : top + 10, left : left + 10] += 1

    assert count.min() >= 1
    assert len(network.shown) == len(tops) * len(lefts)
    np.testing.assert_allclose(found, total / count, atol=1e-5)


def test_an_image_that_fits_the_window_is_shown_whole() -> None:
    network = Placed()
    _probabilities([network], picture((20, 24)), Protocol(window=24))
    assert [tuple(x.shape[2:]) for x in network.shown] == [(24, 24)]


def test_a_flipped_view_is_turned_back_and_averaged() -> None:
    image = picture((11, 13))
    found = _probabilities([Placed(tilt=0.3)], image, Protocol(flip=True))[0].numpy()
    shown = normalized(image)
    wanted = (tilted(shown, 0.3) + tilted(shown[:, :, ::-1], 0.3)[:, :, ::-1]) / 2

    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("flip", [False, True])
def test_scales_are_averaged_at_the_image_s_own_size(flip: bool) -> None:
    image = picture((12, 15))
    network = Placed(tilt=0.2)
    found = _probabilities([network], image, Protocol(scales=(0.5, 1.0, 1.5), flip=flip))[0].numpy()
    x = torch.from_numpy(normalized(image))[None]
    wanted = []
    for size in ((6, 8), (12, 15), (18, 22)):
        view = x if size == (12, 15) else F.interpolate(x, size=size, mode="bilinear", antialias=size[0] < 12)
        for mirrored in (False, True)[: 1 + flip]:
            own = tilted(view[0].flip(2).numpy() if mirrored else view[0].numpy(), 0.2)
            back = F.interpolate(torch.from_numpy(own)[None], size=(12, 15), mode="bilinear")[0].numpy()
            wanted.append(back[:, :, ::-1] if mirrored else back)

    assert len(network.shown) == len(wanted)
    np.testing.assert_allclose(found, np.mean(wanted, axis=0), atol=1e-5)


@pytest.mark.parametrize("protocol", [Protocol(), Protocol(window=9), Protocol(flip=True), Protocol(scales=(0.7, 1.4))])
def test_probabilities_stay_probabilities(protocol: Protocol) -> None:
    found = _probabilities([Placed(tilt=0.5)], picture((17, 19)), protocol)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(1, 17, 19))
    assert found.min() >= 0


def test_one_pass_gives_labels_confidence_and_disagreement() -> None:
    networks = {"single": Placed(), "net2": Placed(gain=-1.0), "net3": Placed(tilt=0.3, gain=2.0)}
    image = picture((10, 12))
    found = predict(networks, image, vote="sv")
    p = found.probabilities.astype(np.float64)

    assert [len(network.shown) for network in networks.values()] == [1, 1, 1]
    assert p.shape == (3, 3, 10, 12)
    assert (found.labels.dtype, found.confidence.dtype, found.disagreement.dtype) == (np.uint8, np.float32, np.bool_)
    np.testing.assert_array_equal(found.labels, p.sum(axis=0).argmax(axis=0))
    np.testing.assert_array_equal(
        found.disagreement, [[len(set(p[:, :, y, x].argmax(1))) > 1 for x in range(12)] for y in range(10)]
    )
    np.testing.assert_allclose(
        found.confidence, np.take_along_axis(p.mean(axis=0), found.labels[None].astype(int), 0)[0], atol=1e-6
    )
    assert found.disagreement.any()


@pytest.mark.parametrize("rule", ["single", "net2", "mc", "sv", "hv"])
def test_the_asked_for_vote_answers(rule: str) -> None:
    networks, image = [Placed(), Placed(gain=-1.0)], picture((10, 12))
    p = predict(networks, image).probabilities
    wanted = {"single": p[0], "net2": p[1], "mc": p.max(axis=0)}.get(rule, p.sum(axis=0)).argmax(axis=0)
    if rule == "hv":  # with two networks every disagreement is a tie of two classes
        both = np.stack([own.argmax(axis=0) for own in p])
        sums = np.take_along_axis(p.sum(axis=0), both, 0)
        wanted = np.take_along_axis(both, sums.argmax(axis=0)[None], 0)[0]

    np.testing.assert_array_equal(predict(networks, image, vote=rule).labels, wanted)


def test_networks_answer_in_evaluation_mode_and_are_left_as_they_were() -> None:
    training, evaluating = Placed().train(), Placed().eval()
    predict([training, evaluating], picture((8, 8)))

    assert training.modes == evaluating.modes == [False]
    assert (training.training, evaluating.training) == (True, False)


def test_depths_mean_the_same_picture() -> None:
    image = picture((8, 8))
    deep = image.astype(np.uint16) * 257
    unit = (image / 255.0).astype(np.float32)

    for other in (deep, unit):
        np.testing.assert_allclose(
            predict([Placed()], other).probabilities, predict([Placed()], image).probabilities, atol=1e-5
        )


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 1), (8, 8, 4)])
def test_other_channels_than_in_training_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(PeersegError, match=r"the image has the shape .*, expected \(height, width, 3\) as in training"):
        predict([Placed()], np.zeros(shape, np.uint8))


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"window": 0}, "evaluation.window is 0, expected a number of pixels"),
        ({"overlap": 1.0}, "evaluation.overlap is 1.0, expected at least 0 and below 1"),
        ({"overlap": -0.1}, "evaluation.overlap is -0.1, expected at least 0 and below 1"),
        ({"scales": ()}, r"evaluation.scales is \[\], expected positive sizes"),
        ({"scales": (1.0, 0.0)}, r"evaluation.scales is \[1.0, 0.0\], expected positive sizes"),
    ],
)
def test_a_protocol_that_shows_nothing_is_refused(keywords: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PeersegError, match=sentence):
        Protocol(**keywords)
