"""What finished runs say: numbers over seeds, paired differences, and how sure they are."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from peerseg.errors import PeersegError
from peerseg.runs import METRICS, RunFolder
from peerseg.training import checkpoint

# The 97.5% quantiles of Student's t for 1 to 30 degrees of freedom; beyond, the expansion around the normal's.
T_QUANTILES = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
NORMAL_QUANTILE = 1.959964


@dataclass(frozen=True)
class Spread:
    """Several seeds of one number.

    Args:
        values: One a seed.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return statistics.fmean(self.values)

    def __str__(self) -> str:
        shown = f"{self.mean:.1f}"
        return shown if len(self.values) == 1 else f"{shown} ({min(self.values):.1f} to {max(self.values):.1f})"


@dataclass(frozen=True)
class Difference:
    """One arm minus another, paired by seed.

    Args:
        values: One difference a seed.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean difference."""
        return statistics.fmean(self.values)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% t-interval of the mean difference; None for a single seed."""
        if len(self.values) < 2:
            return None
        half = t_quantile(len(self.values) - 1) * statistics.stdev(self.values) / math.sqrt(len(self.values))
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class Study:
    """The finished runs of a study.

    Args:
        runs: Arm -> seed -> run.
        scores: Arm -> seed -> vote -> column -> percent, at the last step.
    """

    runs: Mapping[str, Mapping[int, RunFolder]]
    scores: Mapping[str, Mapping[int, Mapping[str, Mapping[str, float | None]]]]

    def spread(self, arm: str, vote: str, column: str = "miou") -> Spread | None:
        """One number of one arm over its seeds.

        Args:
            arm: Which arm.
            vote: Which answer.
            column: "miou", "disagreement" or "iou:" and a class.

        Returns:
            The spread; None where the arm has no such vote or no such number.
        """
        values = [scores.get(vote, {}).get(column) for scores in self.scores[arm].values()]
        defined = tuple(value for value in values if value is not None)
        return Spread(defined) if defined else None

    def difference(self, arm: tuple[str, str], base: tuple[str, str], column: str = "miou") -> Difference:
        """One arm's answer minus another's, seed by seed.

        Args:
            arm: (arm, vote).
            base: (arm, vote).
            column: "miou", or "iou:" and a class.

        Returns:
            The paired difference.
        """
        pairs = [
            (self.scores[arm[0]][seed][arm[1]][column], self.scores[base[0]][seed][base[1]][column])
            for seed in self.scores[arm[0]]
        ]
        return Difference(tuple(one - other for one, other in pairs if one is not None and other is not None))

    def answer(self, arm: str) -> str:
        """The vote that an arm answers with unless another is asked for.

        Args:
            arm: Which arm.

        Returns:
            The vote.
        """
        return answer_of(next(iter(self.runs[arm].values())))

    def votes(self) -> list[str]:
        """Every vote that some arm has, in order."""
        return list(
            dict.fromkeys(vote for seeds in self.scores.values() for scores in seeds.values() for vote in scores)
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data: arm -> vote -> mean, least, greatest and every seed's value."""
        table: dict[str, Any] = {}
        for arm in self.scores:
            spreads = {vote: spread for vote in self.votes() if (spread := self.spread(arm, vote)) is not None}
            table[arm] = {
                vote: {"mean": s.mean, "min": min(s.values), "max": max(s.values), "seeds": list(s.values)}
                for vote, s in spreads.items()
            }
        return table


def metrics_of(run: RunFolder, step: int | None = None) -> dict[str, dict[str, float | None]]:
    """The scores of one evaluation, from the run's own rows.

    Args:
        run: The run.
        step: Which; the last where None.

    Returns:
        Vote -> column (``miou``, ``disagreement`` and ``iou:`` of each class) -> percent.
    """
    rows = run.rows(METRICS)
    if not rows:
        raise PeersegError(
            f"{str(run.path)!r} has no row of an evaluation: resume it, or train it anew if it is finished"
        )
    wanted = step if step is not None else max(int(row["step"]) for row in rows)
    return {
        row["vote"]: {key: float(value) if value else None for key, value in row.items() if key not in ("step", "vote")}
        for row in rows
        if int(row["step"]) == wanted
    }


def answer_of(run: RunFolder) -> str:
    """The vote that chose a run's best checkpoint, and answers by default.

    Args:
        run: A finished run.

    Returns:
        The vote.
    """
    found = checkpoint.find(run.path / "checkpoints", "last")
    assert found is not None, "a finished run has a last checkpoint"
    return str(found.state["vote"])


def t_quantile(freedom: int) -> float:
    """The 97.5% quantile of Student's t.

    Args:
        freedom: Degrees of freedom, at least 1.

    Returns:
        The quantile.
    """
    if freedom <= len(T_QUANTILES):
        return T_QUANTILES[freedom - 1]
    z = NORMAL_QUANTILE
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
