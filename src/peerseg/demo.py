"""The demo: three arms on drawn scenes at equal steps, and an honest answer to whether the unlabeled images helped."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peerseg.experiment.results import Difference, Study
from peerseg.experiment.running import say
from peerseg.experiment.settings import Settings, settings_of
from peerseg.report.page import report_study
from peerseg.report.table import mean_table
from peerseg.runs import disk_errors, write_text
from peerseg.study import run_study

ARM, BASE, ALONE = "ncps", "supervised-ensemble", "supervised"


@dataclass(frozen=True)
class Verdict:
    """What the three arms show.

    Args:
        study: The finished study.
        gain: Soft voting of n-CPS minus that of the supervised ensemble, by seed.
        steps: Of every arm.
    """

    study: Study
    gain: Difference
    steps: int

    @property
    def sentence(self) -> str:
        """Whether the unlabeled images helped, by how many points, and how sure that is."""
        return verdict_sentence(self.gain, self.steps)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as ``verdict.json`` holds it; means over the seeds."""
        seeds = list(self.study.runs[ARM])
        means = {
            arm: {"miou": {vote: numbers["mean"] for vote, numbers in votes.items()}}
            for arm, votes in self.study.as_dict().items()
        }
        return {
            "arms": means,
            "gain": self.gain.mean,
            "interval": self.gain.interval,
            "steps": self.steps,
            "seed": seeds[0],
            "seeds": seeds,
            "verdict": self.sentence,
        }


def arms(steps: int | None = None, protocol: str | None = None) -> dict[str, Settings]:
    """The settings of the three arms.

    Args:
        steps: Of each; the recipe's where None.
        protocol: "product", "paper" or "code".

    Returns:
        Arm -> settings.
    """
    overrides = {} if steps is None else {"steps": steps, "evaluation.every": max(1, steps // 10)}
    count = settings_of("demo")[0].method["count"]

    def supervised(networks: int) -> Settings:
        return settings_of("demo", overrides | {"method.name": "supervised", "method.count": networks})[0]

    return {ALONE: supervised(1), BASE: supervised(count), ARM: settings_of("demo", overrides, protocol)[0]}


def demo(out: Path, seeds: Sequence[int], *, steps: int | None = None, protocol: str | None = None) -> Verdict:
    """Train (or resume, or read) the three arms and write ``verdict.json`` and ``report.html``.

    Args:
        out: The folder for everything.
        seeds: Which seeds each arm gets.
        steps: Of each arm; the recipe's where None.
        protocol: "product", "paper" or "code".

    Returns:
        The verdict.
    """
    chosen = arms(steps, protocol)
    study = run_study(chosen, seeds, out / "runs", begin=lambda arm, seed: say(f"\n{arm}, seed {seed}"))
    verdict = Verdict(study, study.difference((ARM, "sv"), (BASE, "sv")), chosen[ARM].steps)
    with disk_errors(out):
        write_text(out / "verdict.json", to_text(verdict))
    report_study(
        study, out / "report.html", title="peerseg demo: did the unlabeled images help?", verdict=verdict.sentence
    )
    return verdict


def to_text(verdict: Verdict) -> str:
    """The verdict as JSON text.

    Args:
        verdict: The verdict.

    Returns:
        What ``verdict.json`` holds.
    """
    import json

    return json.dumps(verdict.as_dict(), indent=2) + "\n"


def table(study: Study) -> str:
    """Every vote of every arm, for the terminal.

    Args:
        study: The finished study.

    Returns:
        The table.
    """
    return mean_table(study).text()


def verdict_sentence(gain: Difference, steps: int) -> str:
    """Say what a gain means, and no more than it means.

    Args:
        gain: By seed, in points of mean IoU.
        steps: Of every arm.

    Returns:
        One or two sentences.
    """
    at = f"after {steps} steps each"
    if gain.interval is None:
        word = "helped" if gain.mean > 0 else "did not help"
        return (
            f"The unlabeled images {word}: {gain.mean:+.1f} points of mean IoU over the supervised ensemble (soft voting, "
            f"{at}). One seed is an example, no proof: --seeds 0,1,2 tells how sure this is."
        )
    low, high = gain.interval
    found = (
        f"{gain.mean:+.1f} points of mean IoU over the supervised ensemble (soft voting, {at}, {len(gain.values)} seeds"
    )
    if low > 0:
        return f"The unlabeled images helped: {found}; 95% interval {low:+.1f} to {high:+.1f})."
    if high < 0:
        return f"The unlabeled images did harm: {found}; 95% interval {low:+.1f} to {high:+.1f}). Ship the supervised ensemble."
    return f"These seeds cannot tell whether the unlabeled images helped: {found}; 95% interval {low:+.1f} to {high:+.1f})."
