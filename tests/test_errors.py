"""The words that help after a mistake."""

import signal

import pytest

from peerseg.errors import PeersegError, StoppedError, named, nearest


def test_a_near_name_is_offered() -> None:
    assert nearest("trainn", ["predict", "train", "split"]) == "did you mean 'train'?"


def test_without_a_near_name_all_are_listed_in_order() -> None:
    assert nearest("xyz", ["train", "predict"]) == "known: predict, train"


def test_a_file_is_named_once() -> None:
    for sentence, shown in (("it is empty", "'a.png': it is empty"), ("'a.png' is empty", "'a.png' is empty")):
        with pytest.raises(PeersegError) as caught, named("a.png"):
            raise PeersegError(sentence)
        assert str(caught.value) == shown


def test_a_stop_tells_its_signal_and_how_to_go_on() -> None:
    stopped = StoppedError(signal.SIGTERM, "runs/photos")

    assert stopped.signal == 15
    assert "peerseg train --resume runs/photos" in str(stopped)


def test_a_stop_is_no_mistake_of_the_user() -> None:
    assert not issubclass(StoppedError, PeersegError)
