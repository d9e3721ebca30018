"""The paper's recipes: every published number, both protocols, and two real steps on fakes of the published trees."""

from pathlib import Path
from typing import Any

import pytest

from fakes import write_cityscapes, write_voc
from peerseg.errors import PeersegError
from peerseg.experiment.reading import protocol_overrides
from peerseg.experiment.running import start
from peerseg.experiment.settings import Settings, differing, settings_of

RECIPES = ("voc", "voc-cutmix", "cityscapes", "cityscapes-cutmix")
STEPS = {
    "voc": {16: 32 * 1240, 8: 34 * 1157, 4: 40 * 992, 2: 60 * 661},
    "cityscapes": {16: 128 * 348, 8: 137 * 325, 4: 160 * 279, 2: 240 * 186},
}
EPOCHS = {"voc": {16: 32, 8: 34, 4: 40, 2: 60}, "cityscapes": {16: 128, 8: 137, 4: 160, 2: 240}}
IMAGES = {"voc": 10582, "cityscapes": 2975}


def made(recipe: str, protocol: str | None = None, gpus: int | None = None, **more: Any) -> Settings:
    overrides = {"data.root": "somewhere"} | {name.replace("__", "."): value for name, value in more.items()}
    return settings_of(recipe, overrides, protocol, gpus)[0]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("ratio", [16, 8, 4, 2])
@pytest.mark.parametrize("encoder", ["resnet50s", "resnet101s"])
@pytest.mark.parametrize("protocol", ["code", "paper"])
def test_every_published_run_has_its_schedule(recipe: str, ratio: int, encoder: str, protocol: str) -> None:
    settings = made(recipe, protocol, data__ratio=ratio, network__encoder=encoder)
    name = recipe.removesuffix("-cutmix")
    few = IMAGES[name] // ratio
    epoch = max(few, IMAGES[name] - few) // 8  # the authors' max_samples, in batches
    assert settings.steps == STEPS[name][ratio]
    assert settings.evaluation["every"] == STEPS[name][ratio] // EPOCHS[name][ratio] == epoch
    assert (settings.data["name"], settings.data["ratio"]) == (name, ratio)
    assert (settings.network["name"], settings.network["encoder"]) == ("deeplabv3plus", encoder)


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_numbers_of_the_scripts(recipe: str) -> None:
    settings, city = made(recipe), recipe.startswith("city")
    method = {key: settings.method[key] for key in ("count", "weight", "ramp", "threshold", "labels", "counted")}
    assert method == {
        **{"count": 3, "weight": 6.0 if city else 1.5, "ramp": 0.0, "threshold": 0.0},
        **{"labels": "train", "counted": "all"},
    }
    assert (settings.method["hardest"], settings.method["certain"]) == (50000 if city else None, 0.7)
    optimizer = {"name": "sgd", "rate": 0.0025, "momentum": 0.9, "decay": 0.0008, "power": 0.9}
    assert settings.optimizer == optimizer
    loader = {key: settings.loader[key] for key in ("batch", "unlabeled_batch", "crop", "between", "flip", "boxes")}
    crop = 800 if city else 512
    assert loader == {"batch": 8, "unlabeled_batch": None, "crop": crop, "between": False, "flip": True, "boxes": 3}
    assert settings.loader["scales"] == (0.5, 0.75, 1.0, 1.5, 1.75, 2.0), "without 1.25"
    shown = {key: settings.evaluation[key] for key in ("window", "published", "flip", "scales")}
    assert shown == {"window": crop, "published": True, "flip": False, "scales": (1.0,)}


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_alone_is_the_code_protocol_on_8_gpus(recipe: str) -> None:
    assert made(recipe) == made(recipe, "code") == made(recipe, "code", 8)


@pytest.mark.parametrize(
    ("recipe", "gpus", "rate", "decay"),
    [
        ("voc", 4, 0.0025, 0.0004),
        ("voc-cutmix", 8, 0.0025, 0.0008),
        ("cityscapes", 4, 0.005, 0.0004),
        ("cityscapes-cutmix", 8, 0.0025, 0.0008),
    ],
)
def test_gpus_set_the_effective_rate_and_decay(recipe: str, gpus: int, rate: float, decay: float) -> None:
    settings = made(recipe, "code", gpus)
    assert (settings.optimizer["rate"], settings.optimizer["decay"]) == (rate, decay)
    assert made(recipe, "code", gpus, optimizer__decay=0.1).optimizer["decay"] == 0.1, "the user's own wins"


@pytest.mark.parametrize(
    ("recipe", "protocol", "gpus", "words"),
    [
        (
            "voc",
            None,
            8,
            "--gpus 8 says whose rate and decay --protocol code takes: give it with that, and a recipe of",
        ),
        ("voc", "paper", 4, "--gpus 4 says whose rate"),
        ("demo", "code", 4, "--gpus 4 says whose rate"),
        ("voc", "code", 5, "gives optimizer.decay for gpus 4, 8, not for 5: give --optimizer.decay too"),
    ],
)
def test_gpus_that_mean_nothing_are_refused(recipe: str, protocol: str | None, gpus: int, words: str) -> None:
    overrides = {"data.root": "somewhere"} if recipe == "voc" else {}
    with pytest.raises(PeersegError, match=words):
        settings_of(recipe, overrides, protocol, gpus)


def test_other_ratios_need_their_own_schedule() -> None:
    with pytest.raises(
        PeersegError, match=r"for data\.ratio 16, 8, 4, 2, not for 3: give --evaluation.every and --steps too"
    ):
        made("voc", data__ratio=3)
    assert made("voc", data__ratio=3, steps=100, evaluation__every=10).steps == 100


@pytest.mark.parametrize("protocol", ["code", "paper"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_two_steps_on_fakes_with_small_crop_batch_and_encoder_and_nothing_else_changed(
    recipe: str, protocol: str, tmp_path: Path
) -> None:
    city = recipe.startswith("city")
    root = write_cityscapes(tmp_path / "data", val=1) if city else write_voc(tmp_path / "data", val=1)
    small = {"loader.crop": 65, "loader.batch": 2, "network.encoder": "efficientnet_lite0"}
    settings, notes = settings_of(recipe, {"data.root": str(root), "steps": 2, **small}, protocol)
    assert notes == ()
    run = start(settings, tmp_path / "run")
    rows = run.rows("metrics.csv")
    assert [row["vote"] for row in rows] == ["single", "net2", "net3", "mc", "sv", "hv"]
    assert all(float(row["miou"]) >= 0 for row in rows)


OWN = {
    "voc-mean-teacher": "mean-teacher",
    "voc-cutmix-seg": "cutmix-seg",
    "voc-cct": "cct",
    "voc-gct": "gct",
    "voc-fixmatch": "fixmatch",
    "voc-unimatch": "unimatch",
    "voc-reco": "reco",
    "voc-dmt": "dmt",
}
SMALL = {"network.encoder": "efficientnet_lite0", "loader.crop": 64, "loader.workers": 0, "steps": 2}


@pytest.mark.parametrize("recipe", OWN)
def test_two_steps_of_a_compared_method_with_the_settings_of_its_paper(recipe: str, tmp_path: Path) -> None:
    root = write_voc(tmp_path / "data", val=1)
    small = {"data.root": str(root), "loader.batch": 2, "loader.unlabeled_batch": 2, **SMALL}
    settings, notes = settings_of(recipe, small | ({"method.rounds": 1} if recipe == "voc-dmt" else {}))
    assert notes == ()
    assert settings.method["name"] == OWN[recipe]
    assert float(start(settings, tmp_path / "run").rows("metrics.csv")[0]["miou"]) >= 0


@pytest.mark.parametrize("protocol", ["product", "code"])
@pytest.mark.parametrize("name", sorted(OWN.values()))
def test_the_common_settings_are_the_recipe_of_the_data_and_the_method_s_own(name: str, protocol: str) -> None:
    settings = made("voc", protocol, method__name=name, method__count=2)
    common = made("voc", protocol)
    assert (settings.optimizer, settings.loader, settings.steps) == (common.optimizer, common.loader, common.steps)
    stated = protocol_overrides(protocol, name)
    assert stated
    assert {f"method.{key}": settings.method[key] for key in settings.method if f"method.{key}" in stated} == stated
    assert "weight" not in settings.method or settings.method["weight"] != 1.5, "that of n-CPS is its own"


def test_hard_pixels_carry_over_to_every_method() -> None:
    for name in sorted(OWN.values()):
        assert made("cityscapes", method__name=name, method__count=2).method["hardest"] == 50000


def test_the_strong_preset_differs_from_the_default_in_its_options_alone() -> None:
    strong, plain = (settings_of(name, {"data.root": "x"})[0] for name in ("ncps-strong", "folder"))
    assert differing(strong.as_dict(), plain.as_dict()) == ["networks", "method.agreement"]
    assert [own["architecture"] for own in strong.networks] == ["DeepLabV3Plus", "FPN", "Unet"]


def test_the_strong_preset_trains(folder: Path, tmp_path: Path) -> None:
    small = {"data.root": str(folder), "loader.crop": 32, "loader.batch": 2, "loader.workers": 0, "steps": 2}
    run = start(settings_of("ncps-strong", small)[0], tmp_path / "run")
    assert [row["vote"] for row in run.rows("metrics.csv")] == ["single", "net2", "net3", "mc", "sv", "hv"]
