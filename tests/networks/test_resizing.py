"""Bilinear resizing as products of matrices: what the library's own resizing gives, values and gradients."""

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from peerseg.networks.resizing import bilinear_weights, resize

SIZES = [((7, 5), (28, 20)), ((8, 8), (29, 31)), ((13, 9), (6, 4)), ((1, 3), (5, 1)), ((6, 6), (6, 12))]


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def _feature(size: tuple[int, int], dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(2, 3, *size, dtype=dtype, generator=torch.Generator().manual_seed(0)).requires_grad_()


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize(("before", "after"), SIZES)
def test_values_and_gradients_are_those_of_the_library(
    before: tuple[int, int], after: tuple[int, int], align: bool
) -> None:
    feature, same = _feature(before), _feature(before)
    ours = resize(feature, after, align_corners=align)
    theirs = F.interpolate(same, size=after, mode="bilinear", align_corners=align)
    torch.testing.assert_close(ours, theirs)
    slope = torch.randn(ours.shape, dtype=ours.dtype, generator=torch.Generator().manual_seed(1))
    ours.backward(slope)
    theirs.backward(slope)
    torch.testing.assert_close(feature.grad, same.grad)


@pytest.mark.parametrize("align", [True, False])
def test_without_that_wish_it_is_the_library_s_own_bit_for_bit(align: bool) -> None:
    feature = _feature((7, 5), torch.float32)
    own = F.interpolate(feature, size=(30, 11), mode="bilinear", align_corners=align)
    assert torch.equal(resize(feature, (30, 11), align_corners=align), own)


@pytest.mark.parametrize("align", [True, False])
def test_every_row_of_weights_adds_up_to_one(align: bool) -> None:
    rows = bilinear_weights(5, 17, align, torch.zeros(0, dtype=torch.float64)).sum(dim=1)
    torch.testing.assert_close(rows, torch.ones_like(rows))


def test_a_feature_of_that_size_is_left_alone() -> None:
    feature = _feature((4, 6))
    assert resize(feature, (4, 6)) is feature


@pytest.mark.usefixtures("deterministic")
def test_half_a_precision_is_lost_in_the_result_alone() -> None:
    feature = _feature((16, 16), torch.bfloat16).detach()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        resized = resize(feature, (64, 64))
    exact = F.interpolate(feature.double(), size=(64, 64), mode="bilinear")
    assert torch.equal(resized, exact.float().to(torch.bfloat16))
