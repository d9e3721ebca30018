"""The documentation is true: Python blocks run, commands are understood, tables say what the source says."""

import importlib
import inspect
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from peerseg.cli import _settings_apart, main
from peerseg.data.classes import read_class_table
from peerseg.experiment.reading import parse_overrides, protocol_overrides
from peerseg.experiment.settings import SUPPLIED, differing, settings_of
from peerseg.experiment.tables import FIXED, TABLES, imported
from peerseg.parsing import EXAMPLES, parser

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    if path.name != "CHANGELOG.md"
)
FENCE = re.compile(r"^ *```(?P<kind>[^\n`]*)\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL)
SHELLS = {"shell", "bash", "sh", "console", ""}
ROW = re.compile(r"^\| `(\w+)` \| (required|`[^`]*`) \|", re.MULTILINE)


class Block(NamedTuple):
    """One fenced block of a page."""

    kind: str
    text: str
    line: int


def blocks(page: str, *kinds: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf8")
    found = [
        Block((match["kind"].split() or [""])[0], match["text"], text.count("\n", 0, match.start()) + 1)
        for match in FENCE.finditer(text)
    ]
    return [block for block in found if block.kind in kinds]


def file_named(block: Block) -> str | None:
    """A block whose first line is ``# NAME`` is that file."""
    match = re.match(r"# ([\w-]+\.(?:py|yaml))\n", block.text)
    return match and match[1]


def command_lines(page: str) -> list[list[str]]:
    """The words of every line that calls peerseg or make, without a prompt and without what the shell sets."""
    joined = [line for block in blocks(page, *SHELLS) for line in block.text.replace("\\\n", " ").splitlines()]
    commands = []
    for line in joined:
        bare = re.sub(r"^(\$ )?(\w+=\S+ )*(\.venv/bin/)?", "", line.strip())
        if re.match(r"(peerseg|make)( |$)", bare):
            commands.append(shlex.split(bare, comments=True))
    return commands


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; modules written there can be imported, and are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def write_files(page: str, desk: Path) -> None:
    for block in blocks(page, "python", "yaml"):
        name = file_named(block)
        if name is not None:
            (desk / name).write_text(block.text, encoding="utf8")
    importlib.invalidate_caches()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_python_blocks_run_as_pasted(page: str, desk: Path) -> None:
    write_files(page, desk)
    namespace: dict[str, Any] = {"__name__": "pasted"}
    for block in blocks(page, "python"):
        # The empty lines put the page's own line numbers into a traceback.
        code = compile("\n" * block.line + block.text, str(ROOT / page), "exec")
        exec(code, namespace)


@pytest.mark.parametrize("page", [page for page in PAGES if command_lines(page)])
def test_commands_are_understood(page: str, desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(page, desk)
    for words in command_lines(page):
        if words[0] == "make":
            assert_targets(words[1:])
        else:
            assert_understood(words[1:], capsys)


def assert_targets(targets: list[str]) -> None:
    known = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf8"), re.MULTILINE)
    for target in targets:
        assert target in known or "=" in target, f"the Makefile has no target {target!r}"


def assert_understood(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words, into = (words[: words.index(">")], words[words.index(">") + 1]) if ">" in words else (words, None)
    if {"--help", "-h", "--version"} & set(words):
        with pytest.raises(SystemExit, match=r"^0$"):
            parser().parse_args(words)
        return
    if not words or words[0] != "train":
        plain, dotted = _settings_apart(words)
        assert parser().parse_args(plain).verb in EXAMPLES, words
        wanted = settings_of("demo", parse_overrides(dotted))[0].evaluation
        assert (wanted == settings_of("demo")[0].evaluation) == (not dotted), words
        return
    if "--resume" in words:  # needs a run, and settings are checked against it
        plain = [word for word in words if not re.match(r"--\w+\.", word)]
        assert parser().parse_known_args(plain)[0].resume is not None, words
        return
    capsys.readouterr()
    status = main([*words, *([] if "--print_config" in words else ["--print_config"])])
    shown = capsys.readouterr()
    assert status == 0, f"{shlex.join(words)}: {shown.err}"
    if into is not None:
        Path(into).write_text(shown.out, encoding="utf8")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "py")])
def test_quoted_code_stands_in_the_file_named_before_it(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf8")
    for match in FENCE.finditer(text):
        if match["kind"].strip() == "py":
            named = re.findall(r"`(src/[\w/]+\.py)`", text[: match.start()])[-1]
            assert match["text"] in (ROOT / named).read_text(encoding="utf8"), f"{named} lacks\n{match['text']}"


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_in_the_text_exist(page: str) -> None:
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf8"))
    assert_targets(re.findall(r"`make ([\w-]+)`", text))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "yaml")])
def test_yaml_blocks_are_read(page: str, tmp_path: Path) -> None:
    for block in blocks(page, "yaml"):
        assert yaml.safe_load(block.text)
        if file_named(block) == "classes.yaml":
            (tmp_path / "classes.yaml").write_text(block.text, encoding="utf8")
            assert len(read_class_table(tmp_path / "classes.yaml").space) > 1


def section_of(heading: str) -> str:
    """The text below one heading of the recipes page, up to the next."""
    text = (ROOT / "docs/recipes.md").read_text(encoding="utf8")
    assert text.count(f"\n{heading}\n") == 1, f"docs/recipes.md lacks {heading!r}"
    return re.split(r"^##", text.split(f"\n{heading}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def defaults_of(section: str, target: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(target).parameters
    return {
        name: "required" if p.default is inspect.Parameter.empty else p.default
        for name, p in parameters.items()
        if name not in SUPPLIED.get(section, ())
    }


NAMED = [(f"### `{s}.name: {name}`", s, path) for s, table in TABLES.items() for name, path in table.items()]


@pytest.mark.parametrize(("heading", "section", "path"), [*NAMED, *((f"### `{s}`", s, p) for s, p in FIXED.items())])
def test_recipes_page_lists_every_setting_with_its_default(heading: str, section: str, path: str) -> None:
    listed = {name: value.strip("`") for name, value in ROW.findall(section_of(heading))}
    defaults = defaults_of(section, imported(path))
    assert list(listed) == list(defaults)
    for name, default in defaults.items():
        plain = list(default) if isinstance(default, tuple) else default
        assert yaml.safe_load(listed[name]) == plain, name


@pytest.mark.parametrize("recipe", ["voc", "voc-cutmix", "cityscapes", "cityscapes-cutmix"])
def test_protocols_differ_in_the_rows_of_the_discrepancy_page_and_in_nothing_else(recipe: str) -> None:
    text = (ROOT / "docs/discrepancies.md").read_text(encoding="utf8")
    assert re.findall(r"^\| (\d+) \|", text, re.MULTILINE) == [str(k) for k in range(1, 26)], "every row"
    stated = {}
    for name, paper, code, rest in re.findall(
        r"`([\w.]+)`: paper `([^`]+)`, code `([^`]+)`(.*) \|$", text, re.MULTILINE
    ):
        only = re.findall(r"`([\w-]+)`", rest.partition("(")[2].partition(")")[0])
        if not only or recipe in only:
            stated[name] = (yaml.safe_load(paper), yaml.safe_load(code))
    section = {"data.root": "somewhere"}
    paper, code = (settings_of(recipe, section, protocol)[0].as_dict() for protocol in ("paper", "code"))
    found = {}
    for name in differing(paper, code):
        part, key = name.split(".")
        found[name] = (paper[part][key], code[part][key])
    assert found == stated
    assert len(stated) == 2


def test_method_page_states_what_the_protocols_set() -> None:
    text = (ROOT / "docs/method.md").read_text(encoding="utf8")
    rows = re.findall(r"^\| `(product|paper|code)` \| `([\w-]+)` \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) == 6
    for protocol, method, cells in rows:
        stated = yaml.safe_load("{" + cells.replace("`", "") + "}")
        assert {f"method.{key}": value for key, value in stated.items()} == protocol_overrides(protocol, method)


def test_examples_of_the_verbs_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    for example in EXAMPLES.values():
        assert_understood(shlex.split(example)[1:], capsys)
