"""A fair comparison: methods on one data set at equal steps, and beside it at equal compute."""

import importlib.resources
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from peerseg.errors import PeersegError, nearest
from peerseg.experiment.reading import protocol_overrides, recipe_names
from peerseg.experiment.results import Difference, Study
from peerseg.experiment.running import say
from peerseg.experiment.settings import Settings, settings_of
from peerseg.report.page import report_study
from peerseg.report.table import NOTHING, Table
from peerseg.runs import disk_errors, write_text
from peerseg.study import run_study

EVALUATIONS = 10  # of a run
HEADS = ("method", "networks", "passes", "compute", "mIoU at equal steps", "difference")


@dataclass(frozen=True)
class Contender:
    """A method with its settings, under a name.

    Args:
        name: What it is called.
        settings: Dotted settings, laid over a recipe.
        passes: Of one network over as many images as there are labeled ones in a step: with a gradient, and without.
        stages: In how many runs one after the other its steps are made.
        networks: Network name -> what the single networks have of their own.
    """

    name: str
    settings: Mapping[str, Any]
    passes: tuple[int, int]
    stages: int = 1
    networks: Mapping[str, list[dict[str, Any]]] | None = None

    @property
    def compute(self) -> float:
        """What a step costs beside a step of one supervised network, a backward pass counted as two forward passes."""
        return (3 * self.passes[0] + self.passes[1]) / 3 / self.stages

    def settle(self, recipe: str, overrides: Mapping[str, Any], steps: int) -> Settings:
        """The settings of a run.

        Args:
            recipe: A name or a file.
            overrides: Laid over it first.
            steps: In all stages together.

        Returns:
            The settings; their steps are those of a stage.
        """
        each = max(1, steps // self.stages)
        fair = protocol_overrides("product", self.settings["method.name"])
        own = {"evaluation.every": max(1, each // EVALUATIONS), **overrides, **fair, **self.settings, "steps": each}
        own["networks"] = self._networks(settings_of(recipe, own | {"networks": None})[0].network["name"])
        return settings_of(recipe, own)[0]

    def _networks(self, name: str) -> list[dict[str, Any]] | None:
        if self.networks is None:
            return None
        if name not in self.networks:
            raise PeersegError(
                f"{self.name} has no different networks for network.name {name!r}, expected one of {', '.join(self.networks)}: "
                "leave it out, or write a recipe with `networks`"
            )
        return self.networks[name]


@dataclass(frozen=True)
class Comparison:
    """What a comparison found.

    Args:
        contenders: In the order they were asked for; differences are to the first.
        equal_steps: The runs at equal steps.
        equal_compute: The runs that each cost what the costliest of the others cost.
        steps: Of each at equal steps.
        longer: Contender -> steps at equal compute.
    """

    contenders: tuple[Contender, ...]
    equal_steps: Study
    equal_compute: Study
    steps: int
    longer: Mapping[str, int]

    def table(self) -> Table:
        """A row a method: mean IoU with its spread, and the difference to the first with its 95% interval."""
        rows = []
        for contender in self.contenders:
            name, (with_, without) = contender.name, contender.passes
            count = contender.settings["method.count"]
            passes = f"{with_} + {without}" + (f", {contender.stages} stages" if contender.stages > 1 else "")
            cells = [name, str(count), passes, f"{contender.compute:.1f}", *self._found(self.equal_steps, name)]
            rows.append((*cells, str(self.longer[name]), *self._found(self.equal_compute, name)))
        return Table((*HEADS, "steps", "mIoU at equal compute", "difference"), tuple(rows))

    def _found(self, study: Study, name: str) -> tuple[str, str]:
        first = self.contenders[0].name
        spread = study.spread(name, study.answer(name))
        difference = study.difference((name, study.answer(name)), (first, study.answer(first)))
        return NOTHING if spread is None else str(spread), NOTHING if name == first else _said(difference)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as ``comparison.json`` holds it."""
        kinds = {"equal steps": self.equal_steps, "equal compute": self.equal_compute}
        first = self.contenders[0].name
        methods: dict[str, Any] = {}
        for contender in self.contenders:
            name = contender.name
            methods[name] = {"passes": list(contender.passes), "stages": contender.stages, "compute": contender.compute}
            for kind, study in kinds.items():
                vote = study.answer(name)
                gain = study.difference((name, vote), (first, study.answer(first)))
                methods[name][kind] = {
                    "steps": self.steps if kind == "equal steps" else self.longer[name],
                    "vote": vote,
                    "votes": study.as_dict()[name],
                    "difference": {"to": first, "mean": gain.mean, "interval": gain.interval},
                }
        return {"seeds": list(self.equal_steps.runs[first]), "methods": methods}


def contenders() -> dict[str, Contender]:
    """Everything ``compare`` knows by name."""
    text = importlib.resources.files("peerseg.experiment").joinpath("contenders.yaml").read_text(encoding="utf8")
    return {
        name: Contender(name, **{**row, "passes": tuple(row["passes"])}) for name, row in yaml.safe_load(text).items()
    }


def compare(
    data: str,
    methods: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    *,
    steps: int | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Comparison:
    """Train (or resume, or read) every method at equal steps and at equal compute, and write pages and numbers.

    Args:
        data: A recipe by name or file, or a folder of images and masks.
        methods: Names of contenders; differences are to the first.
        seeds: Which seeds each gets.
        out: The folder for everything.
        steps: Of each at equal steps; the recipe's where None.
        overrides: Dotted settings for all of them.

    Returns:
        The comparison.
    """
    chosen, over = _chosen(methods), dict(overrides or {})
    _refuse_unfair(seeds, steps, over)
    recipe = data
    if data not in recipe_names() and Path(data).is_dir():
        recipe, over = "folder", {"data.root": data} | over
    steps = settings_of(recipe, over)[0].steps if steps is None else steps
    most = max(contender.compute for contender in chosen)
    longer = {one.name: round(steps * most / one.compute) for one in chosen}
    arms = {f"{one.name}-{n}": one.settle(recipe, over, n) for one in chosen for n in (steps, longer[one.name])}
    study = run_study(arms, seeds, out / "runs", begin=lambda arm, seed: say(f"\n{arm} steps, seed {seed}"))
    found = Comparison(
        chosen,
        _part(study, {one.name: f"{one.name}-{steps}" for one in chosen}),
        _part(study, {name: f"{name}-{n}" for name, n in longer.items()}),
        steps,
        longer,
    )
    with disk_errors(out):
        write_text(out / "comparison.json", json.dumps(found.as_dict(), indent=2) + "\n")
        write_text(out / "comparison.md", found.table().markdown() + "\n")
    for name, part in (("equal-steps", found.equal_steps), ("equal-compute", found.equal_compute)):
        (out / name).mkdir(exist_ok=True)
        report_study(part, out / name / "report.html", title=f"peerseg compare: {name.replace('-', ' ')}")
    return found


def _chosen(names: Sequence[str]) -> tuple[Contender, ...]:
    known = contenders()
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise PeersegError(f"--methods names {unknown!r}; {nearest(unknown, known)}")
    if len(set(names)) != len(names):
        raise PeersegError(f"--methods is {','.join(names)!r}, expected different names such as supervised,cps,ncps")
    return tuple(known[name] for name in names)


def _refuse_unfair(seeds: Sequence[int], steps: int | None, overrides: Mapping[str, Any]) -> None:
    if len(set(seeds)) != len(seeds):
        raise PeersegError(f"--seeds is {','.join(map(str, seeds))}, expected different numbers such as 0,1,2")
    if steps is not None and steps < 1:
        raise PeersegError(f"--steps is {steps}, expected 1 or more")
    own = next(
        (name for name in overrides if name.startswith("method.") or name in ("steps", "seed", "networks")), None
    )
    if own is not None:
        raise PeersegError(f"--{own} is each method's own in a comparison: leave it out")
    if overrides.get("loader.unlabeled_batch") is not None:
        raise PeersegError(
            "--loader.unlabeled_batch would make passes unequal, by which compute is counted: leave it out"
        )


def _part(study: Study, arms: Mapping[str, str]) -> Study:
    """Some arms of a study, under other names."""
    return Study(
        {name: study.runs[arm] for name, arm in arms.items()}, {name: study.scores[arm] for name, arm in arms.items()}
    )


def _said(difference: Difference) -> str:
    if difference.interval is None:
        return f"{difference.mean:+.1f}"
    low, high = difference.interval
    return f"{difference.mean:+.1f} ({low:+.1f} to {high:+.1f})"
