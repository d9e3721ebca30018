"""Tables of a study for the terminal, for Markdown and for a page."""

import pytest

from peerseg.experiment.results import Study
from peerseg.report.table import Table, class_table, mean_table

SCORES = {
    "ncps": {
        0: {"single": {"miou": 50.0, "iou:tree": 40.0, "iou:road": None}, "sv": {"miou": 60.0, "iou:tree": 55.0}},
        1: {"single": {"miou": 52.0, "iou:tree": 44.0, "iou:road": None}, "sv": {"miou": 61.0, "iou:tree": 65.0}},
    },
    "supervised": {
        0: {"single": {"miou": 40.04, "iou:tree": 1.0, "iou:road": 7.0}},
        1: {"single": {"miou": 40.0, "iou:tree": 2.0, "iou:road": None}},
    },
}


@pytest.fixture
def study() -> Study:
    return Study({"ncps": {}, "supervised": {}}, SCORES)


def test_means_of_every_arm_and_vote(study: Study) -> None:
    assert mean_table(study) == Table(
        ("arm", "single", "sv"),
        (
            ("ncps", "51.0 (50.0 to 52.0)", "60.5 (60.0 to 61.0)"),
            ("supervised", "40.0 (40.0 to 40.0)", "-"),
        ),
    )


def test_every_class_under_the_vote_that_answers(study: Study) -> None:
    assert class_table(study, {"ncps": "sv", "supervised": "single"}, ("tree", "road")) == Table(
        ("class", "ncps (sv)", "supervised (single)"),
        (("tree", "60.0 (55.0 to 65.0)", "1.5 (1.0 to 2.0)"), ("road", "-", "7.0")),
    )


def test_text_is_aligned() -> None:
    table = Table(("arm", "sv"), (("ncps", "60.5"), ("supervised-ensemble", "-")))
    assert table.text().splitlines() == [
        "arm                    sv",
        "ncps                 60.5",
        "supervised-ensemble     -",
    ]
