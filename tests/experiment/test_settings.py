"""Settings: recipe, protocol and overrides in that order, checked by name and type, frozen, and plain when written."""

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
import yaml

from peerseg.errors import PeersegError
from peerseg.experiment.reading import protocol_overrides, read_recipe
from peerseg.experiment.settings import Settings, differing, resolve, settings_of

ROOT = {"data.root": "photos"}


def flat(settings: Settings) -> dict[str, Any]:
    """Dotted name -> value."""
    found: dict[str, Any] = {}
    for name, value in settings.as_dict().items():
        found |= {f"{name}.{key}": item for key, item in value.items()} if isinstance(value, dict) else {name: value}
    return found


def test_every_keyword_is_there() -> None:
    settings, notes = settings_of("demo")

    assert notes == ()
    assert settings.method["threshold"] == 0.0, "a default that the recipe does not name"
    assert settings.loader["workers"] == 0
    placement = {"device": "auto", "precision": "auto", "channels_last": True, "deterministic": True}
    assert settings.placement == {"name": "one-process"} | placement
    assert settings.seed == 0


@pytest.mark.parametrize("recipe", ["demo", "folder"])
@pytest.mark.parametrize("protocol", [None, "product", "paper", "code"])
def test_what_is_written_is_read_again(recipe: str, protocol: str | None, tmp_path: Path) -> None:
    overrides = ROOT if recipe == "folder" else {}
    settings, _ = settings_of(recipe, overrides, protocol)
    path = tmp_path / "again.yaml"
    path.write_text(yaml.safe_dump(settings.as_dict()))

    assert settings_of(str(path)) == (settings, ())


@pytest.mark.parametrize("recipe", ["demo", "folder"])
def test_recipes_say_what_the_product_protocol_says(recipe: str) -> None:
    overrides = ROOT if recipe == "folder" else {}
    assert settings_of(recipe, overrides) == settings_of(recipe, overrides, "product")


@pytest.mark.parametrize("protocol", ["paper", "code"])
@pytest.mark.parametrize("method", ["ncps", "ncps-cutmix"])
def test_a_protocol_changes_the_method_keys_it_lists_and_nothing_else(protocol: str, method: str) -> None:
    before = flat(settings_of("demo", {"method.name": method})[0])
    after = flat(settings_of("demo", {"method.name": method}, protocol)[0])
    listed = protocol_overrides(protocol, method)

    assert after == before | listed
    assert after != before


def test_overrides_win_over_the_protocol_and_the_protocol_over_the_recipe() -> None:
    settings = settings_of("demo", {"method.ramp": 0.25, "steps": 7}, "code")[0]

    assert settings.method["ramp"] == 0.25
    assert settings.method["labels"] == "train"
    assert settings.steps == 7


def test_another_name_drops_the_old_one_s_settings_and_says_so() -> None:
    settings, notes = settings_of("demo", {"method.name": "ncps"})

    assert notes == ("method.name was changed, so the recipe's method settings partner, strong do not apply",)
    assert settings.method["ramp"] == 0.4, "what both know stays"
    assert "partner" not in settings.method


def test_a_setting_of_one_s_own_is_never_dropped() -> None:
    with pytest.raises(PeersegError, match=r"method.partner is no setting of NCPS;"):
        settings_of("demo", {"method.name": "ncps", "method.partner": "own"})


def test_settings_are_frozen_and_changed_as_a_copy() -> None:
    settings = settings_of("demo")[0]
    other = settings.with_(seed=4, method__count=2)

    with pytest.raises(FrozenInstanceError):
        settings.seed = 4  # type: ignore[misc]
    assert (settings.seed, settings.method["count"]) == (0, 3)
    assert (other.seed, other.method["count"]) == (4, 2)
    with pytest.raises(PeersegError, match="seed is -1"):
        settings.with_(seed=-1)


def test_networks_may_differ() -> None:
    own = [{}, {"width": 8}, {"name": "library", "architecture": "Unet", "encoder": "resnet18", "weights": None}]
    settings = settings_of("demo", {"networks": own})[0]

    assert [settings.network_of(k)["name"] for k in range(3)] == ["small", "small", "library"]
    assert [settings.network_of(k).get("width") for k in range(3)] == [24, 8, None]
    assert resolve(settings.as_dict(), {})[0] == settings


@pytest.mark.parametrize("networks", [[{}], "small", [{}, {}, 3], {"width": 3}])
def test_networks_that_do_not_fit_their_number_are_refused(networks: object) -> None:
    with pytest.raises(
        PeersegError, match=r"networks is .*, expected a list of 3 tables \(method.count\), one a network"
    ):
        settings_of("demo", {"networks": networks})


def test_a_network_s_own_settings_are_checked() -> None:
    with pytest.raises(PeersegError, match=r"network.widthh is no setting of SmallNetwork; did you mean 'width'"):
        settings_of("demo", {"networks": [{}, {}, {"widthh": 8}]})


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"optimiser.rate": 0.1}, "'optimiser' is no setting; did you mean 'optimizer'"),
        ({"optimizer": {"rate": 0.1}}, "'optimizer' is a section: give its settings one by one, such as optimizer.key"),
        ({"steps.x": 3}, "'steps.x' is no setting: 'steps' has no parts"),
        ({"stepps": 3}, "'stepps' is no setting; did you mean 'steps'"),
        ({"optimizer.rat": 0.1}, "optimizer.rat is no setting of Optimization; did you mean 'rate'"),
        ({"network.classes": 3}, "network.classes is no setting of SmallNetwork;"),
        ({"optimizer.rate": "fast"}, "optimizer.rate is 'fast', expected a number"),
        ({"loader.flip": 3}, "loader.flip is 3, expected true or false"),
        ({"method.labels": "trainn"}, "method.labels is 'trainn', expected one of train, eval"),
        ({"method.name": "npcs"}, "method.name is 'npcs'; did you mean 'ncps'"),
        ({"method.count": 0}, "method.count is 0, expected 1 or more"),
        ({"method.count": 2.5}, "method.count is 2.5, expected a whole number"),
        ({"steps": 0}, "steps is 0, expected a whole number of at least 1"),
        ({"steps": 2.0}, "steps is 2.0, expected a whole number of at least 1"),
        ({"steps": True}, "steps is True, expected a whole number of at least 1"),
        ({"seed": -1}, "seed is -1, expected a whole number of at least 0"),
        ({"seed": None}, "seed is None, expected a whole number of at least 0"),
        ({"data.name": "shape"}, "data.name is 'shape'; did you mean 'shapes'"),
    ],
)
def test_settings_that_are_wrong_are_named(overrides: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PeersegError, match=sentence):
        settings_of("demo", overrides)


@pytest.mark.parametrize(("key", "near"), [("cout", "count"), ("naem", "name")])
def test_count_and_name_are_settings_that_can_be_meant(key: str, near: str) -> None:
    with pytest.raises(PeersegError, match=f"method.{key} is no setting of NCPSCutMix; did you mean '{near}'"):
        settings_of("demo", {f"method.{key}": 3})


def test_what_a_recipe_must_be_told() -> None:
    with pytest.raises(PeersegError, match=r"data.root is missing, expected text: give --data.root"):
        settings_of("folder")


def test_a_section_that_is_no_table_is_refused() -> None:
    with pytest.raises(PeersegError, match=r"loader is \[4\], expected a table of settings"):
        resolve(read_recipe("demo") | {"loader": [4]}, {})


def test_a_section_of_a_recipe_that_is_unknown_is_refused() -> None:
    with pytest.raises(PeersegError, match="'lodaer' is no setting; did you mean 'loader'"):
        resolve(read_recipe("demo") | {"lodaer": {}}, {})


def test_what_differs_is_named_but_for_what_changes_no_result() -> None:
    one = settings_of("demo")[0]
    other = one.with_(seed=1, optimizer__rate=0.5, loader__workers=3, method__name="supervised")
    named = differing(one.as_dict(), other.as_dict())

    assert {"seed", "optimizer.rate", "method.name", "method.weight"} <= set(named)
    assert "loader.workers" not in named
    assert differing(one.as_dict(), one.with_(loader__workers=5).as_dict()) == []


def test_a_weight_file_is_found_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"data.root": "photos", "network.weights": "mine.pth"}
    assert settings_of("folder", given)[0].network["weights"] == str(tmp_path / "mine.pth")
    assert settings_of("folder", {"data.root": "photos"})[0].network["weights"] == "imagenet"
