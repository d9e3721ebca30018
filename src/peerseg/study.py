"""A study: arms x seeds as run folders, made or resumed but never mixed, read into one table."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from peerseg.experiment.results import Study, metrics_of
from peerseg.experiment.running import ensure
from peerseg.experiment.settings import Settings
from peerseg.runs import RunFolder


def run_study(
    arms: Mapping[str, Settings],
    seeds: Sequence[int],
    folder: Path,
    begin: Callable[[str, int], None] | None = None,
) -> Study:
    """Make, resume or read every run of a study.

    Args:
        arms: Name -> settings; the seed in them is replaced.
        seeds: Which seeds each arm gets.
        folder: Holds one run folder ``arm-seedN`` each.
        begin: Told of each run before it starts.

    Returns:
        The finished study.
    """
    runs: dict[str, dict[int, RunFolder]] = {arm: {} for arm in arms}
    for seed in seeds:
        for arm, settings in arms.items():
            if begin is not None:
                begin(arm, seed)
            runs[arm][seed] = ensure(settings.with_(seed=seed), folder / f"{arm}-seed{seed}")
    scores = {arm: {seed: metrics_of(run) for seed, run in made.items()} for arm, made in runs.items()}
    return Study(runs, scores)
