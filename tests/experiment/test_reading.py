"""Recipes, protocols and settings as a user writes them."""

from pathlib import Path

import pytest

from peerseg.errors import PeersegError
from peerseg.experiment.reading import parse_overrides, protocol_overrides, read_recipe, recipe_names, settle
from peerseg.experiment.settings import SECTIONS, settings_of


def test_the_recipes_that_come_along() -> None:
    assert {"demo", "folder"} <= set(recipe_names())


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_has_every_section(name: str) -> None:
    assert set(SECTIONS) <= set(read_recipe(name))


def test_a_recipe_can_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("steps: 3\ndata: {name: shapes}\n")
    assert read_recipe(str(tmp_path / "mine.yaml")) == {"steps": 3, "data": {"name": "shapes"}}


def test_a_recipe_s_name_wins_over_a_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo").write_text("steps: 3\n")
    assert read_recipe("demo") == read_recipe("demo") != {"steps": 3}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("demmo", "'demmo' is no recipe and no file; did you mean 'demo'?"),
        (
            "qqqq",
            f"'qqqq' is no recipe and no file; known: {', '.join(recipe_names())}",
        ),
        (
            "mine.yaml",
            f"the recipe file 'mine.yaml' does not exist; recipes that come along: {', '.join(recipe_names())}",
        ),
    ],
)
def test_a_recipe_that_is_not_there(name: str, sentence: str) -> None:
    with pytest.raises(PeersegError) as caught:
        read_recipe(name)
    assert str(caught.value) == sentence


def test_a_recipe_that_is_no_yaml_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("data: {name: shapes\nsteps: [1\n")
    with pytest.raises(PeersegError, match=r"^the recipe .*bad.yaml' is no YAML: [^\n]*line 2[^\n]*$"):
        read_recipe(str(path))


@pytest.mark.parametrize("text", ["", "- demo\n", "demo\n"])
def test_a_recipe_without_settings_shows_where_one_is_seen(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(PeersegError, match=r"holds no table of settings; `peerseg train \w+ --print_config` shows one"):
        read_recipe(str(tmp_path / "bad.yaml"))


def test_a_recipe_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    with pytest.raises(PeersegError, match=r"picture.png"):
        read_recipe(str(tmp_path / "picture.png"))


def test_choices_follow_what_they_are_made_by() -> None:
    given = {"steps": {"by": "data.ratio", 8: 100, 4: 50}, "seed": 3, "network.options": {"width": 4}}
    assert settle(given, {"data.ratio": 4}) == {"steps": 50}


def test_a_choice_that_was_not_foreseen_says_what_to_give() -> None:
    given = {name: {"by": "data.ratio", 8: 100, 4: 50} for name in ("steps", "evaluation.every")}
    sentence = (
        "gives steps and evaluation.every for data.ratio 8, 4, not for 3: give --steps and --evaluation.every too"
    )
    with pytest.raises(PeersegError, match=sentence):
        settle(given, {"data.ratio": 3})
    with pytest.raises(PeersegError, match="not for None"):
        settle(given, {})


@pytest.mark.parametrize("protocol", ["product", "paper", "code"])
@pytest.mark.parametrize("method", ["ncps", "ncps-cutmix"])
def test_a_protocol_names_settings_of_its_method(protocol: str, method: str) -> None:
    overrides = protocol_overrides(protocol, method)
    settings, notes = settings_of("demo", {"method.name": method, **overrides})

    assert overrides
    assert {f"method.{key}" for key in settings.method} >= set(overrides)
    assert {name: settings.method[name.removeprefix("method.")] for name in overrides} == overrides
    assert all("do not apply" in note for note in notes)


def test_published_values() -> None:
    paper, code = (protocol_overrides(protocol, "ncps-cutmix") for protocol in ("paper", "code"))

    assert (paper["method.partner"], code["method.partner"]) == ("own", "same-image")
    assert paper["method.counted"] == code["method.counted"] == "all"
    assert paper["method.labels"] == code["method.labels"] == "train"
    assert protocol_overrides("paper", "ncps")["method.reduction"] == "sum"
    assert protocol_overrides("code", "ncps")["method.reduction"] == "concatenation"


def test_a_method_without_a_protocol_keeps_its_settings() -> None:
    assert protocol_overrides("paper", "supervised") == {}


def test_a_method_that_no_protocol_knows_is_refused() -> None:
    with pytest.raises(
        PeersegError, match=r"--protocol paper says nothing of the method 'my.lab:Swap': give its settings one"
    ):
        protocol_overrides("paper", "my.lab:Swap")


def test_an_unknown_protocol_names_the_nearest() -> None:
    with pytest.raises(PeersegError, match="--protocol is 'papper'; did you mean 'paper'"):
        protocol_overrides("papper", "ncps")


def test_settings_on_the_command_line_are_read_as_yaml() -> None:
    words = ["--optimizer.rate", "0.1", "--loader.scales=[0.5, 2]", "--data.root", "a=b", "--network.weights", "null"]
    words += ["--loader.flip", "false", "--evaluation.best=", "--data.name", "-5"]

    assert parse_overrides(words) == {
        **{"optimizer.rate": 0.1, "loader.scales": [0.5, 2], "data.root": "a=b", "network.weights": None},
        **{"loader.flip": False, "evaluation.best": None, "data.name": -5},
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rate"], "'rate' is not expected here: settings are given as --section.key value"),
        (["--a.b", "1", "2"], "'2' is not expected here"),
        (["--a.b"], "'--a.b' has no value: settings are given as --section.key value"),
        (["--a.b", "[1"], r"'--a.b' has the value '\[1', which cannot be read: quote it"),
        (["--data.root", "@photos"], "'--data.root' has the value '@photos', which cannot be read: quote it"),
        (["--data.root", "2024-13-45"], "'--data.root' has the value '2024-13-45', which cannot be read: quote it"),
    ],
)
def test_settings_that_cannot_be_read(words: list[str], sentence: str) -> None:
    with pytest.raises(PeersegError, match=sentence):
        parse_overrides(words)


@pytest.mark.parametrize("text", ["photos #2", "photos: x", "- photos", "läufe 1/mein lauf"])
def test_text_is_taken_as_it_stands(text: str) -> None:
    assert parse_overrides(["--data.root", text]) == {"data.root": text}


def test_quotes_make_text_of_a_number() -> None:
    assert parse_overrides(["--data.name", "'2024'"]) == {"data.name": "2024"}
