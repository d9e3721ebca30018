"""The chosen class is that of argmax, the first of equals."""

import pytest
import torch

from peerseg.networks.choosing import choose


@pytest.mark.parametrize("classes", [2, 21, 254])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_it_is_the_first_greatest(classes: int, dtype: torch.dtype) -> None:
    scores = torch.randn(2, classes, 9, 7, generator=torch.Generator().manual_seed(0)).to(dtype)
    scores[0, 1] = scores[0].amax(dim=0)  # a tie
    chosen = choose(scores)
    assert chosen.dtype == torch.uint8
    first = torch.from_numpy(scores.float().numpy().argmax(axis=1))  # numpy promises the first of equals
    assert torch.equal(chosen.long(), first)


def test_any_axis_can_hold_the_classes() -> None:
    scores = torch.randn(3, 2, 5, 4, 6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(choose(scores, dim=2).long(), scores.argmax(dim=2))


def test_what_is_no_number_still_answers_some_class() -> None:
    assert 0 <= int(choose(torch.full((1, 3, 1, 1), torch.nan))) < 3
