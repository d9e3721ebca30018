"""Votes against a transcription that goes pixel by pixel in double precision."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch

from peerseg.errors import PeersegError
from peerseg.inference.voting import Evidence, disagreement, member_index, vote

Floats = npt.NDArray[np.float64]
SIZES = [(1, 2), (2, 2), (3, 4), (5, 3)]


def answers(n: int, classes: int, seed: int = 0) -> Floats:
    """(n, 2, C, 6, 7) probabilities, coarse enough that hard votes tie and fine enough that sums do not."""
    random = np.random.default_rng(seed)
    raised = np.exp(random.normal(0, 1.5, (n, 2, classes, 6, 7)))
    return np.asarray(raised / raised.sum(axis=2, keepdims=True))


def most_confident(p: Floats) -> int:
    """The class of the network that is surest of anything; p is (n, C)."""
    return int(p[p.max(axis=1).argmax()].argmax())


def soft(p: Floats) -> int:
    """The class with the largest sum over the networks."""
    return int(sum(p).argmax())


def hard(p: Floats) -> int:
    """The class most networks choose; of equally many, the one with the largest sum."""
    ballots = [int(own.argmax()) for own in p]
    counts = [ballots.count(k) for k in range(p.shape[1])]
    tied = [k for k, count in enumerate(counts) if count == max(counts)]
    return max(tied, key=lambda k: sum(own[k] for own in p))


def by_pixel(p: Floats, rule: Callable[[Floats], int]) -> npt.NDArray[np.int64]:
    """A rule, one pixel after another."""
    found = np.zeros((p.shape[1], *p.shape[3:]), np.int64)
    for place in np.ndindex(found.shape):
        found[place] = rule(p[:, place[0], :, place[1], place[2]])
    return found


@pytest.mark.parametrize(("n", "classes"), SIZES)
@pytest.mark.parametrize(("name", "rule"), [("mc", most_confident), ("sv", soft), ("hv", hard)])
def test_votes_of_all(n: int, classes: int, name: str, rule: Callable[[Floats], int]) -> None:
    p = answers(n, classes)
    found = vote(torch.from_numpy(p), name)

    assert found.dtype == torch.uint8
    np.testing.assert_array_equal(found.numpy(), by_pixel(p, rule))


@pytest.mark.parametrize(("name", "k"), [("single", 0), ("net1", 0), ("net2", 1), ("net3", 2)])
def test_a_network_alone(name: str, k: int) -> None:
    p = answers(3, 4)
    np.testing.assert_array_equal(vote(torch.from_numpy(p), name).numpy(), p[k].argmax(axis=1))


def test_the_votes_differ_somewhere() -> None:
    found = [vote(torch.from_numpy(answers(3, 4)), rule) for rule in ("single", "mc", "sv", "hv")]
    assert all((found[i] != found[k]).any() for i in range(4) for k in range(i))


def test_a_tie_of_ballots_is_broken_by_the_sum() -> None:
    p = torch.tensor([[0.5, 0.4, 0.1], [0.0, 0.62, 0.38], [0.6, 0.0, 0.4], [0.4, 0.45, 0.15]], dtype=torch.float64)
    shaped = p.reshape(4, 1, 3, 1, 1)
    # Two ballots for class 0, two for class 1: the sums are 1.5 and 1.47.
    assert vote(shaped, "hv").item() == 0
    assert vote(shaped, "mc").item() == 1


def test_a_class_without_the_most_ballots_never_wins_the_hard_vote() -> None:
    p = torch.tensor([[0.0, 0.49, 0.51], [0.51, 0.49, 0.0], [0.51, 0.49, 0.0]], dtype=torch.float64)
    shaped = p.reshape(3, 1, 3, 1, 1)
    assert vote(shaped, "sv").item() == 1
    assert vote(shaped, "hv").item() == 0


@pytest.mark.parametrize(("n", "classes"), SIZES)
def test_disagreement_is_where_not_all_labels_are_equal(n: int, classes: int) -> None:
    p = answers(n, classes)
    labels = p.argmax(axis=2)
    wanted = np.array([len(set(column)) > 1 for column in labels.reshape(n, -1).T])

    np.testing.assert_array_equal(disagreement(Evidence(torch.from_numpy(p))).numpy().ravel(), wanted)
    assert wanted.any() == (n > 1)


@pytest.mark.parametrize(
    ("rule", "hint"), [("net4", "did you mean 'net3'"), ("SV", "known: "), ("singlee", "did you mean 'single'")]
)
def test_an_unknown_vote_names_the_nearest(rule: str, hint: str) -> None:
    with pytest.raises(PeersegError, match=f"'{rule}' is no vote of 3 networks; {hint}"):
        member_index(rule, 3)


def test_a_network_can_have_a_name_of_its_own() -> None:
    p = torch.from_numpy(answers(2, 3))
    assert torch.equal(vote(p, "teacher", ["student", "teacher"]), vote(p, "net2"))
    with pytest.raises(PeersegError, match="'teachr' is no vote of 2 networks; did you mean 'teacher'"):
        vote(p, "teachr", ["student", "teacher"])


def test_a_vote_of_a_network_that_is_not_there_is_refused() -> None:
    with pytest.raises(PeersegError, match="'net2' is no vote of 1 networks"):
        vote(torch.from_numpy(answers(1, 2)), "net2")
