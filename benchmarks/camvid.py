"""``python -m benchmarks.camvid DATA OUT [ARM ...]``: the CamVid experiments, each run once, resumed where it stopped.

The protocol is written in ``docs/experiments/camvid.md``. ``collect OUT`` writes the rows of all finished runs to the page's
files.
"""

import argparse
import csv
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from peerseg.data.dataset import Split
from peerseg.data.randomness import generator
from peerseg.data.splits import read_list, write_lists
from peerseg.experiment.build import build_dataset
from peerseg.experiment.ensemble import Ensemble
from peerseg.experiment.running import ensure
from peerseg.experiment.settings import settings_of

DOCS = Path(__file__).parents[1] / "docs" / "experiments"
ARMS: Mapping[str, Mapping[str, dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf8")
)
REPORT, VAL_SEQUENCE, NEAR_VAL = "0006R0", "0016E5", range(7600, 8501)
BLOCK = 5  # consecutive frames, a second apart, that are labeled together
ROWS, APART = "camvid.csv", "camvid-disagreement.csv"
HEADS = ("experiment", "arm", "labels", "seed", "images", "step", "vote", "miou")
APART_HEADS = ("experiment", "arm", "labels", "seed", "images", "step", "disagreement")


def split_of(train: Sequence[str], val: Sequence[str], ratio: int, seed: int) -> Split:
    """The protocol's split: frames near the val clip and the report's sequence are left out, labels are drawn in blocks.

    Args:
        train: The published training list.
        val: The published val list.
        ratio: One in so many training images is labeled.
        seed: Of the draw.

    Returns:
        The split; without the report's images.
    """
    pool = [id for id in sorted(train) if not id.startswith(REPORT) and not _near_val(id)]
    sequences = [[id for id in pool if id.startswith(name)] for name in sorted({id.split("_")[0] for id in pool})]
    blocks = [frames[k : k + BLOCK] for frames in sequences for k in range(0, len(frames), BLOCK)]
    order = generator(seed, "camvid labels", ratio).permutation(len(blocks))
    drawn = [id for k in order for id in blocks[k]][: len(pool) // ratio]
    labeled = sorted(drawn)
    return Split(tuple(labeled), tuple(id for id in pool if id not in set(drawn)), tuple(val))


def _near_val(id: str) -> bool:
    sequence, frame = id.split("_")
    return sequence == VAL_SEQUENCE and int(frame) in NEAR_VAL


def run_one(data: Path, out: Path, arm: str, ratio: int, seed: int) -> None:
    """Make, resume or read one run, and write its rows into its folder.

    Args:
        data: CamVid's folder.
        out: Where runs lie.
        arm: Its name.
        ratio: One in so many training images is labeled.
        seed: Of the run and of its labels.
    """
    experiment = next(name for name, arms in ARMS.items() if arm in arms)
    train, val, lists = *_published(data), _lists(data, out, ratio, seed)
    overrides = dict(ARMS[experiment][arm])
    protocol = overrides.pop("protocol", None)
    own = {"data.root": str(data), "data.lists": str(lists), "seed": seed}
    run = ensure(settings_of("camvid", own | overrides, protocol)[0], out / name_of(arm, ratio, seed))
    ensemble = Ensemble(run.path, "last")
    dataset = build_dataset(ensemble.settings)
    shown = {"val": val, "report": [id for id in train if id.startswith(REPORT)]}
    rows, apart = [], []
    for images, ids in shown.items():
        scores = ensemble.evaluate(dataset, ids)
        place = (experiment, arm, f"1/{ratio}", seed, images, ensemble.step)
        rows += [(*place, vote, f"{scores.miou(vote):.2f}") for vote in scores.matrices]
        apart.append((*place, f"{scores.disagreement or 0:.2f}"))
    _write(run.path / APART, APART_HEADS, apart)
    _write(run.path / ROWS, HEADS, rows)


def _published(data: Path) -> tuple[list[str], list[str]]:
    return read_list(data / "train.txt"), read_list(data / "val.txt")


def _lists(data: Path, out: Path, ratio: int, seed: int) -> Path:
    """The lists of a split, written once."""
    lists = out / "lists" / f"1-{ratio}-seed{seed}"
    if not (lists / "val.txt").exists():
        write_lists(lists, split_of(*_published(data), ratio, seed))
    return lists


def name_of(arm: str, ratio: int, seed: int) -> str:
    """A run folder's name.

    Args:
        arm: Of the run.
        ratio: Likewise.
        seed: Likewise.
    """
    return f"{arm}-1-{ratio}-seed{seed}"


def collect(out: Path, docs: Path = DOCS) -> int:
    """Write the rows of all finished runs, and keep those that are there of runs made elsewhere.

    Args:
        out: Where runs lie.
        docs: Where the files go.

    Returns:
        How many rows there are now.
    """
    count = 0
    for name, heads in ((ROWS, HEADS), (APART, APART_HEADS)):
        found = {
            row[: len(heads) - 1]: row for path in (docs / name, *sorted(out.glob(f"*/{name}"))) for row in _rows(path)
        }
        _write(docs / name, heads, [found[key] for key in sorted(found)])
        count += len(found)
    return count


def _rows(path: Path) -> list[tuple[str, ...]]:
    if not path.exists():
        return []
    with path.open(encoding="utf8", newline="") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def _write(path: Path, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([heads, *rows])


def main(words: Sequence[str] | None = None) -> None:
    """Run arms, several at a time in processes of their own, or one in this process.

    Args:
        words: The command line.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.camvid")
    parser.add_argument("data", type=Path, help="CamVid's folder, or `collect`")
    parser.add_argument("out", type=Path, help="where runs lie")
    parser.add_argument("arms", nargs="*", help="names of arms or experiments; all where none is named")
    parser.add_argument("--labels", default="8", help="one in so many training images is labeled (default: 8)")
    parser.add_argument("--seeds", default="0", help="such as 0,1,2")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    given = parser.parse_intermixed_args(words)
    if str(given.data) == "collect":
        print(f"{collect(given.out)} rows")
        return
    names = given.arms or list(ARMS)
    arms = list(dict.fromkeys(arm for name in names for arm in ARMS.get(name, {name: {}})))
    work = [(arm, ratio, seed) for seed in given.seeds.split(",") for ratio in given.labels.split(",") for arm in arms]
    if len(work) == 1:
        (arm, ratio, seed) = work[0]
        run_one(given.data.absolute(), given.out.absolute(), arm, int(ratio), int(seed))
        return
    for _, ratio, seed in work:
        _lists(given.data, given.out, int(ratio), int(seed))  # before several processes look for them
    with ThreadPoolExecutor(given.jobs) as pool:
        failed = [name for name, code in pool.map(lambda one: _process(given, one), work) if code]
    print(f"{len(work) - len(failed)} runs are finished" + (f"; failed: {', '.join(failed)}" if failed else ""))


def _process(given: argparse.Namespace, one: tuple[str, str, str]) -> tuple[str, int]:
    arm, ratio, seed = one
    name = name_of(arm, int(ratio), int(seed))
    given.out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.camvid", str(given.data), str(given.out), arm]
    with (given.out / f"{name}.log").open("w", encoding="utf8") as log:
        done = subprocess.run([*command, "--labels", ratio, "--seeds", seed], stdout=log, stderr=log, check=False)
    return name, done.returncode


if __name__ == "__main__":
    main()
