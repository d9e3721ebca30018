"""The endless stream: a batch is a function of the step alone, and never sees the mask of an unlabeled image."""

import os
import signal
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image
import pytest
import torch
from torch import Tensor

from conftest import write_labels, write_picture
from peerseg.data.batch import Batch, View, cut, map_tensors
from peerseg.data.color import Jitter
from peerseg.data.dataset import Split
from peerseg.data.files import read_image
from peerseg.data.folder import ImageFolder
from peerseg.data.labels import IGNORE, UNLABELED
from peerseg.data.loading import BatchStream, Partner, ViewSettings, Wants
from peerseg.data.streaming import stream_batches
from peerseg.data.views import draw_geometry, standardize, view_image
from peerseg.errors import PeersegError

SPLIT = Split(("img0", "img1", "img2"), ("img4", "img5", "img6", "img7"), ("img3",))
VIEWS = ViewSettings(mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4), crop=(16, 16), scales=(0.5, 1.0, 1.5))
WHOLE = replace(VIEWS, crop=(20, 24), scales=(1.0,), flip=False)
PARTNERS: list[Partner] = ["none", "own", "same-image", "neighbor"]

Streams = Callable[..., BatchStream]


@pytest.fixture
def stream(folder: Path) -> Streams:
    """Make a stream over the folder; two images of either kind a step unless told otherwise."""

    def make(wants: Wants | None = None, split: Split = SPLIT, views: ViewSettings = VIEWS, **more: Any) -> BatchStream:
        sizes = {"batch": 2, "unlabeled_batch": 2} | more
        return BatchStream(ImageFolder(folder), split, views, wants or Wants(), **sizes)

    return make


def tensors(batch: Batch) -> list[Tensor]:
    """Every tensor of a batch."""
    found: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    map_tensors(batch, keep)
    return found


def same(one: Batch, other: Batch) -> bool:
    """Whether two batches agree in every bit and every file."""
    pairs = list(zip(tensors(one), tensors(other), strict=True))
    return one.files == other.files and all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)


def view_of(batch: Batch, name: str = "unlabeled") -> View:
    view = getattr(batch, name)
    assert isinstance(view, View)
    return view


def places(stream: BatchStream, steps: int, part: slice) -> list[str]:
    """The names of the images of some steps, of those slots of ``files``."""
    return [Path(file).stem for step in range(steps) for file in stream.batch(step).files[part]]


def save_mask(folder: Path, id: str, *values: int) -> npt.NDArray[np.uint8]:
    mask = np.resize(np.array(values, np.uint8), (20, 24))
    PIL.Image.fromarray(mask).save(folder / "masks" / f"{id}.png")
    return mask


@pytest.mark.parametrize("partner", PARTNERS)
@pytest.mark.parametrize("strong", [0, 2])
def test_a_batch_has_the_views_the_method_wants(stream: Streams, partner: Partner, strong: int) -> None:
    batch = stream(Wants(partner=partner, strong=strong), batch=3, unlabeled_batch=4).batch(0)
    assert (batch.images.shape, batch.images.dtype) == ((3, 3, 16, 16), torch.float32)
    assert (batch.masks.shape, batch.masks.dtype) == ((3, 16, 16), torch.uint8)
    assert (batch.inside.shape, batch.inside.dtype) == ((3, 16, 16), torch.bool)
    views = [view_of(batch)] + ([view_of(batch, "partner")] if partner in ("own", "same-image") else [])
    for view in views:
        assert (view.images.shape, view.images.dtype) == ((4, 3, 16, 16), torch.float32)
        assert (view.inside.shape, view.inside.dtype) == ((4, 16, 16), torch.bool)
        assert [part.shape for part in view.strong] == [(4, 3, 16, 16)] * strong
    assert len(batch.files) == 3 + 4 * len(views)
    assert (batch.partner is None) == (len(views) == 1)
    assert bool(batch.boxes) == (partner != "none")
    for boxes in batch.boxes:
        assert (boxes.shape, boxes.dtype) == ((4, 16, 16), torch.bool)
        assert len({row.numpy().tobytes() for row in boxes}) == 4, "every slot has boxes of its own"


def test_a_supervised_batch_has_no_unlabeled_images(stream: Streams) -> None:
    batch = stream(Wants(unlabeled=False)).batch(0)
    assert (batch.unlabeled, batch.partner, batch.boxes) == (None, None, ())
    assert len(batch.files) == 2


def test_labeled_images_do_not_depend_on_what_else_is_wanted(stream: Streams) -> None:
    alone = stream(Wants(unlabeled=False)).batch(3)
    beside = stream(Wants(partner="own", strong=1), unlabeled_batch=5).batch(3)
    assert torch.equal(alone.images, beside.images)
    assert torch.equal(alone.masks, beside.masks)


def test_images_are_normalized_and_masks_untouched(stream: Streams, folder: Path) -> None:
    batch = stream(views=WHOLE).batch(0)
    assert batch.inside.all()
    for k in range(2):
        path = Path(batch.files[k])
        stored = np.asarray(PIL.Image.open(path), np.float64) / 255
        expected = ((stored - VIEWS.mean) / VIEWS.std).transpose(2, 0, 1)
        assert np.abs(batch.images[k].numpy() - expected).max() < 1e-5
        assert np.array_equal(batch.masks[k].numpy(), np.asarray(PIL.Image.open(folder / "masks" / path.name)))


def test_image_and_mask_see_the_same_part(stream: Streams, folder: Path) -> None:
    """Image and mask hold the same ramp of 5 a pixel: half a step is the nearest pixel's rounding, a whole one a shift."""
    (folder / "classes.yaml").write_text(f"classes: {[f'c{k}' for k in range(120)]}")
    rows, columns = 5 * np.indices((20, 24), np.uint8)
    for k in range(5):
        ramp = PIL.Image.fromarray(columns if k % 2 else rows)
        ramp.save(folder / "masks" / f"img{k}.png")
        ramp.convert("RGB").save(folder / "images" / f"img{k}.png")
    views = replace(VIEWS, mean=(0.0,) * 3, std=(1.0,) * 3, scales=(0.5, 1.0, 2.0), crop=(22, 22))
    made = stream(Wants(unlabeled=False), views=views)
    falls = set()
    for batch in (made.batch(step) for step in range(8)):
        difference = (255 * batch.images[:, 0] - batch.masks).abs()
        assert difference[batch.inside].max() < 4.5
        assert (batch.masks[~batch.inside] == IGNORE).all()
        middles = zip(batch.masks[:, 11].int(), batch.inside[:, 11], strict=True)
        falls |= {int(row[shown].diff().sum().sign()) for row, shown in middles}
    assert falls == {-1, 0, 1}, "flipped, not a ramp from left to right, not flipped"


def test_padding_is_the_mean_color_ignored_and_outside(stream: Streams) -> None:
    views = replace(VIEWS, crop=(32, 40), scales=(1.0,))
    batch = stream(Wants(partner="own", strong=1), views=views).batch(0)
    expected = torch.zeros(32, 40, dtype=torch.bool)
    expected[6:26, 8:32] = True
    unlabeled, partner = view_of(batch), view_of(batch, "partner")
    shown = [(batch.images, batch.inside), *((v.images, v.inside) for v in (unlabeled, partner))]
    shown += [(view.strong[0], view.inside) for view in (unlabeled, partner)]
    for images, inside in shown:
        assert torch.equal(inside, expected.expand(2, -1, -1))
        assert (images.permute(0, 2, 3, 1)[~inside] == 0).all()
        assert (images.permute(0, 2, 3, 1)[inside] != 0).float().mean() > 0.9
    assert (batch.masks[~batch.inside] == IGNORE).all()
    assert (batch.masks[batch.inside] < 2).all()


@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize(("dtype", "full"), [(np.uint8, 255), (np.uint16, 65535), (np.float32, 1)])
def test_any_channels_and_depth(tmp_path: Path, channels: int, dtype: npt.DTypeLike, full: int) -> None:
    (tmp_path / "images").mkdir()
    stack = (np.random.default_rng(0).random((4, 20, 24, channels)) * full).astype(dtype)
    for k, pixels in enumerate(stack):
        np.save(tmp_path / "images" / f"img{k}.npy", pixels)
        write_labels(tmp_path / "masks" / f"img{k}.png", seed=k)
    views = replace(WHOLE, mean=(0.0,) * channels, std=(1.0,) * channels)
    split = Split(("img0",), ("img1",), ("img2",))
    wants = Wants(partner="own", strong=1)
    batch = BatchStream(ImageFolder(tmp_path), split, views, wants, batch=1, unlabeled_batch=1).batch(0)
    expected = (stack.astype(np.float64) / full).transpose(0, 3, 1, 2)
    assert np.abs(batch.images[0].numpy() - expected[0]).max() < 1e-6
    assert np.abs(view_of(batch).images[0].numpy() - expected[1]).max() < 1e-6
    assert view_of(batch).strong[0].shape == (1, channels, 20, 24)
    assert batch.images.abs().max() <= 1


def test_images_of_odd_and_unequal_sizes_share_a_batch(tmp_path: Path) -> None:
    for k, size in enumerate([(7, 31), (33, 5), (1, 1), (19, 23)]):
        write_picture(tmp_path / "images" / f"img{k}.png", seed=k, size=size)
        PIL.Image.new("L", size[::-1], k % 2).save(tmp_path / "images" / f"mask{k}.png")
        (tmp_path / "masks").mkdir(exist_ok=True)
        (tmp_path / "images" / f"mask{k}.png").rename(tmp_path / "masks" / f"img{k}.png")
    split = Split(("img0", "img1", "img2"), ("img3",), ())
    made = BatchStream(ImageFolder(tmp_path), split, VIEWS, Wants(partner="own"), batch=3, unlabeled_batch=2)
    for step in range(4):
        batch = made.batch(step)
        assert batch.images.shape == (3, 3, 16, 16)
        assert ((batch.masks == IGNORE) == ~batch.inside).all()
        assert batch.inside.any(dim=(1, 2)).all()


def test_strong_views_show_the_same_place_in_other_colors(stream: Streams) -> None:
    """Without gray and blur, brightness alone: every pixel is the weak view's times one number."""
    jitter = Jitter(chance=1, contrast=0, saturation=0, cast=0, gray=0, blur=0)
    views = replace(VIEWS, mean=(0.0,) * 3, std=(1.0,) * 3, jitter=jitter)
    view = view_of(stream(Wants(strong=2), views=views).batch(0))
    factors = []
    for strong in view.strong:
        for k in range(2):
            ratio = (strong[k] / view.images[k])[view.images[k] > 0.05]
            assert ratio.max() - ratio.min() < 1e-3
            factors.append(round(float(ratio.mean()), 4))
    assert len(set(factors)) == 4, "every slot and every strong view has a draw of its own"


@pytest.mark.parametrize(("boxes", "rectangles"), [(1, True), (3, False)])
def test_the_single_box_variant_draws_one_rectangle(stream: Streams, boxes: int, rectangles: bool) -> None:
    made = stream(Wants(partner="neighbor"), views=replace(VIEWS, boxes=boxes, crop=(32, 32)), unlabeled_batch=4)
    masks = torch.cat([made.batch(step).boxes[0] for step in range(3)])
    filled = []
    for drawn in masks:
        rows, columns = np.nonzero(drawn.numpy())
        filled.append(len(rows) == (np.ptp(rows) + 1) * (np.ptp(columns) + 1))
    assert len(filled) == 12
    assert all(filled) == rectangles


@pytest.mark.parametrize("partner", PARTNERS)
def test_batches_depend_on_neither_workers_nor_start(stream: Streams, partner: Partner) -> None:
    made = stream(Wants(partner=partner, strong=1))
    alone = list(stream_batches(made, 0, 5))
    resumed = list(stream_batches(stream(Wants(partner=partner, strong=1)), 2, 5, workers=2))
    assert len(alone) == 5
    assert len(resumed) == 3
    assert all(same(one, other) for one, other in zip(alone[2:], resumed, strict=True))
    assert not any(same(one, other) for one, other in pairwise(alone))


def test_no_steps_no_batches(stream: Streams) -> None:
    assert list(stream_batches(stream(), 3, 3)) == []


def test_batches_ignore_and_leave_alone_the_global_generators(stream: Streams) -> None:
    wants = Wants(partner="own", strong=1)
    first = next(stream_batches(stream(wants), 4, 5))
    torch.manual_seed(123)
    np.random.seed(123)  # the very generator that must not matter
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    again = next(stream_batches(stream(wants), 4, 5))
    assert same(first, again)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_seeds_give_other_batches(stream: Streams) -> None:
    one, other = (stream(Wants(partner="own"), seed=seed).batch(0) for seed in (0, 1))
    assert not torch.equal(one.images, other.images)
    assert not torch.equal(view_of(one).images, view_of(other).images)
    assert not torch.equal(one.boxes[0], other.boxes[0])


def test_one_image_in_two_slots_is_seen_in_two_views(stream: Streams) -> None:
    made = stream(Wants(partner="own"), split=Split(("img0",), ("img5",), ()))
    batch = made.batch(0)
    assert not torch.equal(batch.images[0], batch.images[1])
    unlabeled, partner = view_of(batch).images, view_of(batch, "partner").images
    assert not torch.equal(unlabeled[0], unlabeled[1])
    assert not torch.equal(unlabeled, partner)


@pytest.mark.parametrize(("part", "count"), [(slice(0, 2), 3), (slice(2, 4), 4), (slice(4, 6), 4)])
def test_every_pass_is_a_permutation(stream: Streams, part: slice, count: int) -> None:
    """Six passes; a batch may hold the end of one and the begin of the next."""
    order = places(stream(Wants(partner="own")), 6 * count // 2, part)
    passes = [tuple(order[k : k + count]) for k in range(0, len(order), count)]
    ids = SPLIT.labeled if part.start == 0 else SPLIT.unlabeled
    assert len(passes) == 6
    assert all(sorted(one) == sorted(ids) for one in passes)
    assert len(set(passes)) > 1, "each pass has an order of its own"


def test_the_partner_has_an_order_of_its_own(stream: Streams) -> None:
    made = stream(Wants(partner="own"))
    assert places(made, 12, slice(2, 4)) != places(made, 12, slice(4, 6))


def test_the_same_image_is_the_partner_in_another_view(stream: Streams) -> None:
    made = stream(Wants(partner="same-image"))
    assert places(made, 6, slice(2, 4)) == places(made, 6, slice(4, 6))
    batch = made.batch(0)
    assert not torch.equal(view_of(batch).images, view_of(batch, "partner").images)


def test_the_neighbor_needs_no_views_of_its_own(stream: Streams) -> None:
    wants = Wants(partner="neighbor")
    batch = stream(wants).batch(0)
    assert batch.partner is None
    assert torch.equal(view_of(batch).images, view_of(stream(replace(wants, partner="own")).batch(0)).images)


def test_pairs_to_mix_need_an_even_number(stream: Streams) -> None:
    with pytest.raises(PeersegError, match=r"3 unlabeled images a step have no pairs to mix: .*even number .*'own'"):
        stream(Wants(partner="neighbor"), unlabeled_batch=3)


@pytest.mark.parametrize("partner", PARTNERS)
@pytest.mark.parametrize("unlabeled", [("img5",), ("img5", "img6")], ids=["one", "fewer than labeled"])
def test_few_unlabeled_images_are_enough(stream: Streams, partner: Partner, unlabeled: tuple[str, ...]) -> None:
    split = Split(("img0", "img1", "img2"), unlabeled, ("img3",))
    made = stream(Wants(partner=partner), split=split, unlabeled_batch=4)
    seen = places(made, 3, slice(2, 6))
    assert len(seen) == 12
    assert set(seen) == set(unlabeled)


@pytest.mark.parametrize("partner", ["none", "own", "same-image"])
def test_a_batch_of_one(stream: Streams, partner: Partner) -> None:
    batch = stream(Wants(partner=partner, strong=1), batch=1, unlabeled_batch=1).batch(7)
    assert all(len(tensor) == 1 for tensor in tensors(batch))


@pytest.mark.parametrize("deletion", [True, False], ids=["deleted", "broken"])
def test_masks_of_unlabeled_images_change_no_bit(folder: Path, deletion: bool) -> None:
    (folder / "classes.yaml").write_text("classes: [ground, crack]")
    for name, ids in (("labeled", ("img0", "img1")), ("val", ("img2",))):
        (folder / f"{name}.txt").write_text("\n".join(ids))

    def batches() -> list[Batch]:
        dataset = ImageFolder(folder)
        assert {"img3", "img4"} < set(dataset.split().unlabeled)
        made = BatchStream(dataset, dataset.split(), VIEWS, Wants(partner="own", strong=1), batch=2, unlabeled_batch=3)
        return [made.batch(step) for step in range(6)]

    before = batches()
    for mask in (folder / "masks" / f"img{k}.png" for k in (3, 4)):
        mask.unlink() if deletion else mask.write_bytes(b"broken")
    assert all(same(one, other) for one, other in zip(before, batches(), strict=True))


@pytest.mark.parametrize("partner", ["own", "same-image", "neighbor"])
def test_partly_labeled_images_join_the_unlabeled_stream_of_a_mixing_method(
    stream: Streams, folder: Path, partner: Partner
) -> None:
    mask = save_mask(folder, "img1", 0, UNLABELED, IGNORE, 1, UNLABELED)
    made = stream(Wants(partner=partner), views=WHOLE, partly=("img1",))
    seen = []
    for step in range(5):
        batch = made.batch(step)
        stems = [Path(file).stem for file in batch.files[2:]]
        views = [view_of(batch)] + ([] if batch.partner is None else [batch.partner])
        shown = torch.cat([view.inside for view in views])
        for stem, inside in zip(stems, shown, strict=True):
            assert np.array_equal(inside.numpy(), mask != IGNORE) if stem == "img1" else inside.all()
        seen += stems[:2]
    assert sorted(seen[:5]) == ["img1", *SPLIT.unlabeled]
    assert sorted(seen[5:]) == ["img1", *SPLIT.unlabeled]


def test_ignored_pixels_of_partly_labeled_images_move_with_the_view(stream: Streams, folder: Path) -> None:
    """Black where ignored: what is inside a scaled, flipped and padded view is not black."""
    mask = save_mask(folder, "img1", *[UNLABELED] * 14, *[IGNORE] * 10)
    PIL.Image.fromarray(np.where(mask == IGNORE, 0, 255).astype(np.uint8)[..., None].repeat(3, axis=2)).save(
        folder / "images" / "img1.png"
    )
    views = replace(VIEWS, mean=(0.0,) * 3, std=(1.0,) * 3, crop=(28, 28))
    made = stream(
        Wants(partner="own"), split=Split(("img0",), (), ()), views=views, partly=("img1",), unlabeled_batch=4
    )
    for step in range(4):
        view = view_of(made.batch(step))
        assert view.inside.any(dim=(1, 2)).all()
        assert (view.images[:, 0][view.inside] > 0.4).all()
        assert (view.images[:, 0][~view.inside] < 0.6).all()


def test_partly_labeled_images_stay_labeled_where_nothing_is_mixed(stream: Streams, folder: Path) -> None:
    save_mask(folder, "img1", 0, UNLABELED, 1)
    made = stream(views=WHOLE, partly=("img1",), batch=3)
    assert "img1" not in places(made, 4, slice(3, None))
    batch = made.batch(0)
    slot = [Path(file).stem for file in batch.files].index("img1")
    assert (batch.masks[slot] == UNLABELED).sum() == 160
    assert batch.inside[slot].all()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_is_one_sentence_from_any_process(stream: Streams, folder: Path, workers: int) -> None:
    made = stream()
    (folder / "images" / "img5.png").write_bytes(b"")
    with pytest.raises(PeersegError, match=r"img5\.png' cannot be read as an image") as caught:
        list(stream_batches(made, 0, 4, workers=workers))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("id", ["img1", "img5"], ids=["labeled", "unlabeled"])
def test_an_image_of_other_channels_is_named(stream: Streams, folder: Path, id: str) -> None:
    PIL.Image.new("L", (24, 20)).save(folder / "images" / f"{id}.png")
    with pytest.raises(PeersegError, match=rf"{id}\.png' has 1 channels, expected 3 as in the first labeled image"):
        list(stream_batches(stream(), 0, 4))


def test_no_unlabeled_image_is_refused(stream: Streams) -> None:
    with pytest.raises(PeersegError, match="unlabeled"):
        stream(split=Split(("img0",), (), ("img3",))).batch(0)


def test_a_change_reaches_every_tensor(stream: Streams) -> None:
    batch = stream(Wants(partner="own", strong=2)).batch(0)
    changed = map_tensors(batch, lambda tensor: tensor[:1])
    assert len(tensors(batch)) == 3 + 2 * 4 + 1
    assert all(len(tensor) == 1 for tensor in tensors(changed))
    assert changed.files == batch.files
    assert all(len(tensor) == 2 for tensor in tensors(batch)), "the batch itself was changed"


@pytest.mark.parametrize("published", [False, True])
def test_a_large_picture_is_never_held_as_floats(tmp_path: Path, published: bool) -> None:
    height, width, crop = 1024, 2048, 512
    write_picture(tmp_path / "large.png", size=(height, width))
    chance = np.random.default_rng(0)
    image = read_image(tmp_path / "large.png")  # what is imported at first does not count
    tracemalloc.start()
    for scale in (0.5, 1.0, 2.0):
        geometry = draw_geometry(chance, (height, width), (crop, crop), (scale,))
        image = read_image(tmp_path / "large.png")
        standardize(view_image(image, geometry, published=published), 255, (0.5,) * 3, (0.25,) * 3, geometry)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert image.nbytes < peak < 4 * image.nbytes, "as floats the picture alone has four times its bytes"


def test_a_batch_is_cut_into_equal_parts_in_order(stream: Streams) -> None:
    whole = stream(Wants(partner="own", strong=1)).batch(0)
    parts = list(cut(whole, 2))
    assert [len(part.images) for part in parts] == [1, 1]
    for one, *pieces in zip(tensors(whole), *(tensors(part) for part in parts), strict=True):
        assert torch.equal(torch.cat(pieces), one)
    assert all(part.files == whole.files for part in parts)


def test_a_change_keeps_what_is_absent_absent(stream: Streams) -> None:
    changed = map_tensors(stream(Wants(unlabeled=False)).batch(0), torch.clone)
    assert (changed.unlabeled, changed.partner, changed.boxes) == (None, None, ())


@pytest.mark.parametrize("workers", [0, 1])
def test_our_own_mistakes_keep_their_traceback_and_end(
    monkeypatch: pytest.MonkeyPatch, stream: Streams, workers: int
) -> None:
    monkeypatch.setattr(ImageFolder, "image", lambda *_: 1 / 0)
    with pytest.raises(RuntimeError, match=r"Traceback(.|\n)*ZeroDivisionError"):
        list(stream_batches(stream(), 0, 2, workers=workers))


def test_a_killed_process_that_makes_batches_is_one_sentence(monkeypatch: pytest.MonkeyPatch, stream: Streams) -> None:
    made = stream()
    monkeypatch.setattr(ImageFolder, "image", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(PeersegError, match="a process that makes batches was killed, probably for lack of memory"):
        list(stream_batches(made, 0, 2, workers=1))


def test_boxes_cover_the_share_asked_for(stream: Streams) -> None:
    views = replace(VIEWS, boxes=1, area=(0.1, 0.12), crop=(64, 64))
    made = stream(Wants(partner="neighbor"), views=views, unlabeled_batch=4)
    shares = torch.cat([made.batch(step).boxes[0] for step in range(4)]).double().mean(dim=(1, 2))
    assert 0.08 < shares.min() <= shares.max() < 0.14


def test_only_some_images_are_mixed(stream: Streams) -> None:
    wants = Wants(partner="neighbor")
    always, half = (stream(wants, views=replace(VIEWS, mixing=chance), unlabeled_batch=4) for chance in (1.0, 0.5))
    one, other = (torch.cat([made.batch(step).boxes[0] for step in range(10)]) for made in (always, half))
    mixed = other.any(dim=(1, 2))
    assert 10 < mixed.sum() < 30
    assert torch.equal(other[mixed], one[mixed]), "whether comes after where"


def test_two_mixed_views_have_boxes_of_their_own(stream: Streams) -> None:
    one = stream(Wants(partner="neighbor", mixed=1, strong=2)).batch(3).boxes
    first, second = stream(Wants(partner="neighbor", mixed=2, strong=2)).batch(3).boxes
    assert torch.equal(first, one[0])
    assert not torch.equal(first, second)
