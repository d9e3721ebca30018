"""The page: one file that needs nothing else, with numbers, pictures and curves."""

import base64
import html
import io
import re
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from conftest import TINY
from peerseg.data import Shapes
from peerseg.errors import PeersegError
from peerseg.experiment.ensemble import Ensemble
from peerseg.experiment.results import Study, metrics_of
from peerseg.experiment.running import start
from peerseg.experiment.settings import settings_of
from peerseg.report import report_run, report_study
from peerseg.report.panels import GAP, panels, write_sheet
from peerseg.report.table import class_table, mean_table
from peerseg.runs import RunFolder

# So slow that networks and votes still differ as their first weights did, however a processor rounds.
LONGER = TINY | {"steps": 10, "evaluation.every": 5, "optimizer.rate": 0.01}
ARMS = {"alone & <first>": {"method.name": "supervised", "method.count": 1}, "ncps": {}}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("study")
    runs = {
        arm: {0: start(settings_of("demo", LONGER | own)[0], folder / str(k))}
        for k, (arm, own) in enumerate(ARMS.items())
    }
    return Study(runs, {arm: {0: metrics_of(seeds[0])} for arm, seeds in runs.items()})


def written(study: Study, path: Path, **keywords: str) -> str:
    return report_study(study, path / "report.html", title="A & B", **keywords).read_text(encoding="utf8")


def pictures_of(page: str) -> list[np.ndarray]:
    """Every picture in the page, decoded."""
    found = re.findall(r'<img src="data:image/png;base64,([^"]+)"', page)
    return [np.asarray(PIL.Image.open(io.BytesIO(base64.b64decode(text)))) for text in found]


def test_the_page_needs_nothing_else(study: Study, tmp_path: Path) -> None:
    page = written(study, tmp_path)
    addresses = re.findall(r"""(?:src|href|url|data|action)\s*[=(]\s*["']?([^"'\s>)]*)""", page)

    assert set(re.findall(r"https?://[^\s\"'<)]*", page)) == {"http://www.w3.org/2000/svg"}
    assert addresses
    assert all(address.startswith("data:image/png;base64,") for address in addresses)
    assert not re.search(r"<(script|link|iframe)|@import", page)
    assert "pictures.png" not in page


def test_every_number_of_the_tables_is_there(study: Study, tmp_path: Path) -> None:
    page = written(study, tmp_path)
    answers = {"alone & <first>": "single", "ncps": "sv"}
    tables = mean_table(study), class_table(study, answers, Shapes(2).label_space.names)

    for table in tables:
        for row in table.rows:
            assert "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" in page


def test_names_are_escaped(study: Study, tmp_path: Path) -> None:
    page = written(study, tmp_path, verdict="3 < 4 & more")

    assert "<first>" not in page
    assert "alone &amp; &lt;first&gt; (single)" in page
    assert "<title>A &amp; B</title>" in page
    assert '<p class="verdict">3 &lt; 4 &amp; more</p>' in page


def test_without_a_verdict_there_is_no_box(study: Study, tmp_path: Path) -> None:
    assert '<p class="verdict">' not in written(study, tmp_path)


def test_pictures_show_image_truth_networks_vote_and_disagreement(study: Study, tmp_path: Path) -> None:
    page = written(study, tmp_path)
    run = study.runs["ncps"][0]
    ensemble, dataset = Ensemble(run.path, "last"), Shapes(10, labeled=3, val=2, size=24)
    found = ensemble.predict(dataset.image("scene-00008"))
    image, truth, *networks, answer, apart = [picture[::5, ::5] for picture in pictures_of(page)[:7]]
    paint = dataset.label_space.paint

    assert len({picture.tobytes() for picture in (*networks, answer, apart)}) == 5, "every column is its own"
    assert re.findall(r"<th>(image|truth|single|net2|net3|sv|disagreement)</th>", page)[-7:] == [
        *("image", "truth", "single", "net2", "net3", "sv", "disagreement")
    ]
    assert len(pictures_of(page)) == 2 * 7
    np.testing.assert_array_equal(image, dataset.image("scene-00008"))
    np.testing.assert_array_equal(truth, paint(dataset.mask("scene-00008")))
    for own, probabilities in zip(networks, found.probabilities, strict=True):
        np.testing.assert_array_equal(own, paint(probabilities.argmax(axis=0).astype(np.uint8)))
    np.testing.assert_array_equal(answer, paint(found.labels))
    np.testing.assert_array_equal(apart, np.stack([found.disagreement * 255] * 3, axis=-1))


def test_one_network_has_no_vote_to_show(study: Study) -> None:
    run = study.runs["alone & <first>"][0]
    names, rows = panels(Ensemble(run.path, "last"), Shapes(10, val=2, size=24), ["scene-00008"])

    assert names == ["image", "truth", "single"]
    assert [len(row) for row in rows] == [3]


def test_an_image_without_a_mask_is_shown_twice(study: Study) -> None:
    class Maskless(Shapes):
        def mask(self, id: str) -> None:  # type: ignore[override]
            return None

    run = study.runs["ncps"][0]
    _, rows = panels(Ensemble(run.path, "last"), Maskless(3, size=24), ["scene-00000"])

    np.testing.assert_array_equal(rows[0][0], rows[0][1])
    assert (rows[0][0] != rows[0][2]).any()


def test_the_pictures_lie_beside_the_page_as_one_file(study: Study, tmp_path: Path) -> None:
    page = written(study, tmp_path)
    with PIL.Image.open(tmp_path / "pictures.png") as file:
        sheet = np.asarray(file)
    pictures = pictures_of(page)

    assert sheet.shape == (2 * (120 + GAP), 7 * (120 + GAP), 3)
    for k, picture in enumerate(pictures):
        top, left = (120 + GAP) * (k // 7), (120 + GAP) * (k % 7)
        np.testing.assert_array_equal(sheet[top : top + 120, left : left + 120], picture)
    assert (sheet[120:124] == 255).all(), "pictures are apart"


def test_rows_of_unequal_sizes_share_a_sheet(tmp_path: Path) -> None:
    rows = [[np.full((160, 140, 3), 10, np.uint8)] * 2, [np.full((140, 190, 3), 20, np.uint8)] * 2]
    write_sheet(tmp_path / "sheet.png", rows)
    with PIL.Image.open(tmp_path / "sheet.png") as file:
        sheet = np.asarray(file)

    assert sheet.shape == (160 + 140 + 2 * GAP, 2 * (190 + GAP), 3)
    np.testing.assert_array_equal(sheet[:160, :140], rows[0][0])
    np.testing.assert_array_equal(sheet[160 + GAP : -GAP, 190 + GAP : -GAP], rows[1][1])
    assert (sheet[:160, 2 * (140 + GAP) :] == 255).all()


def test_curves_of_scores_disagreement_and_losses(study: Study, tmp_path: Path) -> None:
    page = written(study, tmp_path)

    assert page.count("<svg") == 3
    for name in ("ncps (sv)", "mIoU, percent", "pixels in disagreement, percent", "losses of ncps"):
        assert f">{name}</text>" in page


def test_another_arm_can_be_shown(study: Study, tmp_path: Path) -> None:
    assert len(pictures_of(written(study, tmp_path, show="alone & <first>"))) == 2 * 3


def test_a_run_has_a_page_of_its_own(study: Study) -> None:
    for arm, charts in (("ncps", 3), ("alone & <first>", 2)):
        run = study.runs[arm][0]
        path = report_run(RunFolder.open(run.path))
        page = path.read_text(encoding="utf8")

        assert path == run.path / "report.html"
        assert page.count("<svg") == charts
        assert f"<title>peerseg: {run.path.name}</title>" in page
        assert "seed: 0" in page


def test_a_page_that_cannot_be_written_is_one_sentence(study: Study, tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match=r"cannot write .*nowhere/"):
        report_study(study, tmp_path / "nowhere" / "report.html", title="x")
