"""The paper's equations, transcribed as naively as possible, in double precision: what the methods are held against."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from peerseg.data.batch import Batch, View
from peerseg.methods.base import Clock, Method
from peerseg.methods.passes import learn
from peerseg.networks import SmallNetwork
from peerseg.placement.single import Together
from peerseg.training.loop import back_propagate

Pass = Callable[[int, Tensor, str], Tensor]


def cross_entropy(logits: Tensor, labels: Tensor, counted: Tensor) -> Tensor:
    """l(p, y): the mean over the counted pixels of an image, then over the images."""
    images = []
    for b in range(len(logits)):
        total = logits.new_zeros(())
        for row, column in counted[b].nonzero().tolist():
            pixel = logits[b, :, row, column]
            total = total + torch.logsumexp(pixel, dim=0) - pixel[int(labels[b, row, column])]
        images.append(total / max(int(counted[b].sum()), 1))
    return torch.stack(images).mean()


def hard_pixels(logits: Tensor, masks: Tensor, least: int, threshold: float) -> Tensor:
    """OHEM of one image a process: sort every probability, keep up to the least-th or the threshold; (B, H, W) bool."""
    kept = []
    for scores, mask in zip(logits.detach(), masks, strict=True):
        known = mask < 254
        if known.sum() < least:
            kept.append(known)
            continue
        target = mask.long().where(known, 0)
        q = scores.softmax(0).gather(0, target[None])[0].where(known, 1.0)
        limit = max(threshold, float(q.flatten().sort().values[min(q.numel(), least) - 1]))
        kept.append(known & (q <= limit))
    return torch.stack(kept)


def squared_distance(logits: Tensor, target: Tensor, counted: Tensor) -> Tensor:
    """The mean over classes and counted pixels of an image, then over the images."""
    images = []
    for b in range(len(logits)):
        total = logits.new_zeros(())
        for row, column in counted[b].nonzero().tolist():
            total = total + ((logits[b, :, row, column].softmax(0) - target[b, :, row, column]) ** 2).mean()
        images.append(total / max(int(counted[b].sum()), 1))
    return torch.stack(images).mean()


def algorithm_1(run: Pass, batch: Batch, counted: Sequence[Tensor], *, count: int, weight: float, mean: str) -> Tensor:
    """n-CPS: the pair loop over every (l, r), all graphs alive until the one backward."""
    assert batch.unlabeled is not None
    seen = [(run(j, batch.images, "labeled"), run(j, batch.unlabeled.images, "unlabeled")) for j in range(count)]
    shares = _shares(batch, mean)
    cross = torch.zeros((), dtype=torch.float64)
    for left in range(count):
        for right in range(left + 1, count):
            for side in (0, 1):
                y_left = seen[left][side].detach().argmax(1)
                y_right = seen[right][side].detach().argmax(1)
                pair = cross_entropy(seen[left][side], y_right, counted[side])
                pair = pair + cross_entropy(seen[right][side], y_left, counted[side])
                cross = cross + shares[side] * pair
    supervised = sum((cross_entropy(own, batch.masks, batch.masks < 254) for own, _ in seen), torch.zeros(()))
    return supervised + weight / (count - 1) * cross


def algorithm_2(
    run: Pass, label: Pass, batch: Batch, second: View, counted: Tensor, *, count: int, weight: float, strong: bool
) -> Tensor:
    """n-CPS with CutMix: logits are mixed, as published, and every graph is alive until the one backward."""
    assert batch.unlabeled is not None
    first, boxes = batch.unlabeled, batch.boxes[0][:, None].double()
    images = (first.strong[0], second.strong[0]) if strong else (first.images, second.images)
    mixed = (1 - boxes) * images[0] + boxes * images[1]
    logits = []
    for j in range(count):
        ones, others = label(j, first.images, "unlabeled"), label(j, second.images, "partner")
        logits.append((1 - boxes) * ones + boxes * others)
    seen = [(run(j, mixed, "mixed"), run(j, batch.images, "labeled")) for j in range(count)]
    cross = torch.zeros((), dtype=torch.float64)
    for left in range(count):
        for right in range(left + 1, count):
            cross = cross + cross_entropy(seen[left][0], logits[right].argmax(1), counted)
            cross = cross + cross_entropy(seen[right][0], logits[left].argmax(1), counted)
    supervised = sum((cross_entropy(own, batch.masks, batch.masks < 254) for _, own in seen), torch.zeros(()))
    return supervised + weight / (count - 1) * cross


def _shares(batch: Batch, mean: str) -> tuple[float, float]:
    assert batch.unlabeled is not None
    known, open_ = len(batch.images), len(batch.unlabeled.images)
    return (1.0, 1.0) if mean == "sum" else (known / (known + open_), open_ / (known + open_))


def passes(networks: Sequence[SmallNetwork], clock: Clock) -> Pass:
    """A pass of network j over a view, with the dropout of that place."""
    return lambda j, images, view: learn(networks[j], images, clock, j, view)


def networks(count: int, *, classes: int = 3, dropout: float = 0.3) -> list[SmallNetwork]:
    """Small networks in double precision, each from its own seed; with BatchNorm and dropout."""
    made = []
    for k in range(count):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(k)
            made.append(SmallNetwork(classes, width=4, dropout=dropout).double())
    return made


def learned(method: Method, given: Batch, clock: Clock, share: float = 1.0) -> dict[str, float]:
    """Back-propagate a step's losses as the loop does, and add up those of one name."""
    values: dict[str, float] = {}
    for loss in method.losses(given, Together(method.count), clock):
        values[loss.name] = values.get(loss.name, 0.0) + float(loss.value.detach().mean())
        back_propagate(loss, share)
    return values


def gradients(module: nn.Module) -> Tensor:
    """All gradients of a module in one row; 0 where there is none."""
    return torch.cat(
        [torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in module.parameters()]
    )


def batch(*, labeled: int = 2, unlabeled: int = 4, classes: int = 3, side: int = 16, partner: bool = False) -> Batch:
    """A batch with ignored and unlabeled pixels, padding, two strong views, two sets of boxes and stored labels."""
    random = torch.Generator().manual_seed(7)

    def images(count: int) -> Tensor:
        return torch.randn(count, 3, side, side, generator=random, dtype=torch.float64)

    def view() -> View:
        inside = torch.ones(unlabeled, side, side, dtype=torch.bool)
        inside[0, :, :4] = False
        inside[-1, 9:] = False
        labels = torch.randint(0, classes, inside.shape, generator=random, dtype=torch.uint8)
        labels[:, 3] = 255
        confidence = 0.3 + 0.7 * torch.rand(inside.shape, generator=random)
        return View(images(unlabeled), inside, (images(unlabeled), images(unlabeled)), labels, confidence)

    masks = torch.randint(0, classes, (labeled, side, side), generator=random, dtype=torch.uint8)
    masks[0, :5], masks[-1, 6:9] = 255, 254
    inside = torch.ones(labeled, side, side, dtype=torch.bool)
    inside[0, :2] = False
    boxes = tuple(torch.rand(unlabeled, side, side, generator=random) < 0.3 for _ in range(2))
    return Batch(images(labeled), masks, inside, view(), view() if partner else None, boxes, ("a", "b"))
