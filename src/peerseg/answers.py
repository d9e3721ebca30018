"""What a trained run answers: scores on its val images, and labels for any picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from peerseg.data.dataset import Split
from peerseg.data.files import IMAGE_SUFFIXES, find_files, read_image, write_mask
from peerseg.data.splits import digest
from peerseg.errors import PeersegError, named
from peerseg.experiment.build import build_dataset
from peerseg.experiment.ensemble import Ensemble
from peerseg.experiment.running import watch
from peerseg.inference.evaluate import Scores
from peerseg.inference.predict import Prediction
from peerseg.inference.voting import JOINT, member_index
from peerseg.report.pictures import overlay, to_rgb
from peerseg.runs import RunFolder, disk_errors


def evaluate_run(path: str | Path, which: str = "best", overrides: Mapping[str, Any] | None = None) -> Scores:
    """Score every vote of a run on its val images.

    Args:
        path: The run folder.
        which: "best" or "last" checkpoint.
        overrides: Settings of the evaluation that differ from the run's.

    Returns:
        The scores.
    """
    ensemble = Ensemble(path, which, overrides)
    dataset = build_dataset(ensemble.settings)
    if dataset.label_space.names != ensemble.label_space.names:
        raise PeersegError(
            f"the data now has the classes {', '.join(dataset.label_space.names)}, the run was trained on "
            f"{', '.join(ensemble.label_space.names)}: restore its classes.yaml"
        )
    val = dataset.split().val
    before = RunFolder.open(path).read_json("environment.json").get("val")
    if before != digest(Split((), (), val)):
        raise PeersegError(
            f"the val images are not those of the run {str(path)!r}, and may have been trained on: restore the lists and masks, "
            "or give a val.txt"
        )
    scores = ensemble.evaluate(dataset, watch(val, "evaluating"))
    if next(iter(scores.matrices.values())).sum(axis=1).tolist() != ensemble.judged:
        raise PeersegError(
            f"the val masks are not those of the run {str(path)!r}: restore them, or judge a run that was trained with these"
        )
    return scores


def predict_files(
    path: str | Path,
    inputs: Sequence[Path],
    out: Path,
    *,
    which: str = "best",
    vote: str | None = None,
    probabilities: bool = False,
    disagreement: bool = False,
    overrides: Mapping[str, Any] | None = None,
) -> int:
    """Label image files: ``OUT/stem.png`` with a palette, ``OUT/overlays/stem.png`` to look at.

    Args:
        path: The run folder.
        inputs: Image files, or folders of them.
        out: Where the answers go.
        which: "best" or "last" checkpoint.
        vote: Which answer; the run's own where None.
        probabilities: Also write ``OUT/probabilities/stem.npz``, (n, C, H, W).
        disagreement: Also write ``OUT/disagreement/stem.png``, white where the networks disagree.
        overrides: Settings of the evaluation that differ from the run's.

    Returns:
        How many images were labeled.
    """
    files = _find(inputs)
    ensemble = Ensemble(path, which, overrides)
    if vote is not None and vote not in JOINT:
        member_index(vote, len(ensemble.predictors.members), list(ensemble.predictors.members))
    _refuse_overwriting(files, out)
    for stem in watch(files, "labeling"):
        image = read_image(files[stem])
        with named(str(files[stem])):
            found = ensemble.predict(image, vote=vote)
        with disk_errors(out):
            write_mask(_place(out, stem, ".png"), found.labels, ensemble.label_space)
            colored = overlay(to_rgb(image), ensemble.label_space.paint(found.labels))
            PIL.Image.fromarray(colored).save(_place(out / "overlays", stem, ".png"))
            _write_maps(out, stem, found, probabilities, disagreement)
    return len(files)


def _write_maps(out: Path, stem: str, found: Prediction, probabilities: bool, disagreement: bool) -> None:
    if probabilities:
        np.savez_compressed(_place(out / "probabilities", stem, ".npz"), probabilities=found.probabilities)
    if disagreement:
        picture = PIL.Image.fromarray(found.disagreement.astype(np.uint8) * np.uint8(255))
        picture.save(_place(out / "disagreement", stem, ".png"))


def _find(inputs: Sequence[Path]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for path in inputs:
        if not path.exists():
            raise PeersegError(f"{str(path)!r} does not exist: give image files, or folders of them")
        found = find_files(path, IMAGE_SUFFIXES) if path.is_dir() else {path.stem: path}
        twice = next((stem for stem in found if stem in files), None)
        if twice is not None:
            raise PeersegError(
                f"{str(files[twice])!r} and {str(found[twice])!r} would both be answered as {twice!r}: give their common folder"
            )
        files |= found
    if not files:
        raise PeersegError(f"no image was found in {', '.join(map(str, inputs))}, expected {', '.join(IMAGE_SUFFIXES)}")
    return files


def _refuse_overwriting(files: Mapping[str, Path], out: Path) -> None:
    inputs = {path.resolve() for path in files.values()}
    written: set[Path] = set()
    for stem in files:
        for answer in (out / f"{stem}.png", out / "overlays" / f"{stem}.png", out / "disagreement" / f"{stem}.png"):
            if answer in written:
                raise PeersegError(
                    f"{str(answer)!r} would be the answer to two images: rename the folder of one, or answer it by itself"
                )
            written.add(answer)
            if answer.resolve() in inputs:
                raise PeersegError(
                    f"{str(answer)!r} is one of the images and would be overwritten: choose another --out"
                )


def _place(folder: Path, stem: str, suffix: str) -> Path:
    path = folder / f"{stem}{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
