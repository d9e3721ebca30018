"""One self-contained HTML page: what a study or a run found, in numbers, pictures and curves."""

import importlib.resources
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined, Template

from peerseg.experiment.build import build_dataset
from peerseg.experiment.ensemble import Ensemble
from peerseg.experiment.results import Study, metrics_of
from peerseg.report.chart import Points, line_chart
from peerseg.report.panels import panels, write_sheet
from peerseg.report.pictures import data_uri
from peerseg.report.table import class_table, mean_table
from peerseg.runs import LOSSES, METRICS, RunFolder, disk_errors, write_text

SHOWN = 6  # images in the pictures


def report_study(
    study: Study,
    path: Path,
    *,
    title: str,
    verdict: str | None = None,
    show: str | None = None,
    moved: Mapping[str, Any] | None = None,
) -> Path:
    """Write the page of a study, and its pictures as ``pictures.png`` beside it.

    Args:
        study: A finished study.
        path: The file to write.
        title: Of the page.
        verdict: The sentence on top.
        show: The arm whose pictures are shown; the last where None.
        moved: Settings that say where its data lies now, if not where it lay in training.

    Returns:
        The file.
    """
    arm = show or list(study.runs)[-1]
    seeds = list(study.runs[arm])
    ensemble = Ensemble(study.runs[arm][seeds[0]].path, "last", moved)
    dataset = build_dataset(ensemble.settings)
    names, pictures = panels(ensemble, dataset, dataset.split().val[:SHOWN])
    answers = {each: study.answer(each) for each in study.runs}
    page = _template().render(
        title=title,
        verdict=verdict,
        means=mean_table(study),
        classes=class_table(study, answers, dataset.label_space.names),
        remark=f"At the last step; seeds {', '.join(map(str, seeds))}.",
        legend=[
            (name, f"rgb{color}")
            for name, color in zip(dataset.label_space.names, dataset.label_space.colors, strict=True)
        ],
        picture_names=names,
        pictures=[[data_uri(picture) for picture in row] for row in pictures],
        charts=_charts(study, answers),
        settings=yaml.safe_dump(
            {each: runs[seeds[0]].settings() for each, runs in study.runs.items()}, sort_keys=False
        ),
    )
    with disk_errors(path):
        write_sheet(path.with_name("pictures.png"), pictures)
        write_text(path, page)
    return path


def report_run(run: RunFolder, moved: Mapping[str, Any] | None = None) -> Path:
    """Write ``report.html`` into a run folder.

    Args:
        run: A finished run.
        moved: As for ``report_study``.

    Returns:
        The file.
    """
    seed = int(run.settings()["seed"])
    method = str(run.settings()["method"]["name"])
    study = Study({method: {seed: run}}, {method: {seed: metrics_of(run)}})
    return report_study(study, run.path / "report.html", title=f"peerseg: {run.path.name}", moved=moved)


def _charts(study: Study, answers: Mapping[str, str]) -> list[str]:
    runs = {arm: next(iter(seeds.values())) for arm, seeds in study.runs.items()}
    means = {f"{arm} ({answers[arm]})": _metric(run, answers[arm], "miou") for arm, run in runs.items()}
    apart = {arm: points for arm, run in runs.items() if (points := _metric(run, answers[arm], "disagreement"))}
    last = list(runs)[-1]
    charts = [
        line_chart(means, across="step", up="mIoU, percent"),
        line_chart(apart, across="step", up="pixels in disagreement, percent"),
        line_chart(_losses(runs[last]), across="step", up=f"losses of {last}"),
    ]
    return [chart for chart in charts if chart]


def _metric(run: RunFolder, vote: str, column: str) -> Points:
    rows = [row for row in run.rows(METRICS) if row["vote"] == vote and row[column]]
    return [(float(row["step"]), float(row[column])) for row in rows]


def _losses(run: RunFolder) -> dict[str, Points]:
    rows = run.rows(LOSSES)
    names = [name for name in (rows[0] if rows else {}) if name not in ("step", "rate")]
    return {name: [(float(row["step"]), float(row[name])) for row in rows] for name in names}


def _template() -> Template:
    text = (importlib.resources.files("peerseg.report") / "page.jinja").read_text(encoding="utf8")
    return Environment(autoescape=True, undefined=StrictUndefined).from_string(text)
