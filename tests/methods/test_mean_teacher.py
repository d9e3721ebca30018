"""Mean teacher against its equation, transcribed naively in double precision."""

import pytest
import torch

from oracle import batch, cross_entropy, gradients, learned, networks, squared_distance
from peerseg.errors import PeersegError
from peerseg.methods import Clock, MeanTeacher

CLOCK = Clock(seed=3, step=5, steps=10)


@pytest.mark.parametrize("labels", ["train", "eval"])
@pytest.mark.parametrize("counted", ["inside", "all"])
def test_gradients_are_those_of_the_equation(labels: str, counted: str) -> None:
    given, (student, teacher) = batch(), networks(2, dropout=0)
    assert given.unlabeled is not None
    teacher.train(labels == "train")
    inside = [given.inside & (given.masks != 255), given.unlabeled.inside]
    counts = inside if counted == "inside" else [torch.ones_like(pixels) for pixels in inside]
    with torch.no_grad():
        soft = [teacher(images).softmax(1) for images in (given.images, given.unlabeled.images)]
    known, unknown = student(given.images), student(given.unlabeled.images)
    near = 2 / 6 * squared_distance(known, soft[0], counts[0]) + 4 / 6 * squared_distance(unknown, soft[1], counts[1])
    (cross_entropy(known, given.masks, given.masks < 254) + 100 * near).backward()

    method = MeanTeacher(networks(1, dropout=0), ramp=0, labels=labels, counted=counted)
    method.teachers.networks[0].load_state_dict(networks(2)[1].state_dict())
    learned(method, given, CLOCK)
    wanted = gradients(student)
    assert (gradients(method.networks) - wanted).abs().max() <= 1e-12 * wanted.abs().max()


def test_the_weight_grows_over_the_ramp() -> None:
    values = []
    for step in (0, 4, 9):
        method = MeanTeacher(networks(1, dropout=0), ramp=0.5, labels="train")
        method.teachers.networks[0].load_state_dict(networks(2)[1].state_dict())
        values.append(learned(method, batch(), Clock(seed=0, step=step, steps=10))["unlabeled1"])
    assert values[0] == pytest.approx(values[1] / 5)
    assert values[1] == pytest.approx(values[2])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"decay": 1.5}, "method.decay is 1.5"),
        ({"weight": -1.0}, "method.weight is -1.0"),
        ({"labels": "sometimes"}, "method.labels is 'sometimes', expected one of train, eval"),
        ({"answers": "nobody"}, "method.answers is 'nobody', expected one of teacher, student"),
        ({"counted": "few"}, "method.counted is 'few'"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(PeersegError, match=named):
        MeanTeacher(networks(1), **options)
