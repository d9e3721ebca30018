"""The layers: who may import whom, who knows devices, and what the command line leaves alone until it is needed."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import peerseg

SOURCE = Path(peerseg.__file__).parent
LAYERS = {
    **{"errors": 0, "runs": 0.5},
    **{"data": 1, "networks": 1},
    **{"methods": 2, "inference": 2},
    **{"placement": 3, "training": 3.5},
    **{"experiment": 4, "recipes": 4},
    **{"study": 5, "report": 5},
    # The public door opens to everything; its version is below everything.
    **{"cli": 7, "__init__": 7, "__main__": 8},
}
CAPABILITY = 6.0
MODULES = sorted(SOURCE.rglob("*.py"))
HELP = """
import sys
import peerseg
from peerseg.cli import main
from peerseg.parsing import EXAMPLES
for words in ([], *([verb] for verb in EXAMPLES)):
    try:
        main([*words, "--help"])
    except SystemExit as end:
        assert not end.code
    heavy = sorted({"torch", "timm", "torchvision", "segmentation_models_pytorch"} & set(sys.modules))
    print("HEAVY", words, *heavy)
"""


def part_of(path: Path) -> str:
    """The package or top-level module a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def layer_of(part: str) -> float:
    """Its number; what has no number of its own is a capability."""
    return LAYERS.get(part, CAPABILITY)


def imported(path: Path) -> Iterator[str]:
    """Every part of peerseg a file imports, also inside functions and for types alone."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            module = node.module or ""
            names = [f"peerseg.{alias.name}" for alias in node.names] if module == "peerseg" else [module]
        yield from (name.split(".")[1] for name in names if name.startswith("peerseg."))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_from_lower_layers_and_its_own_package_alone(path: Path) -> None:
    own = part_of(path)
    parts = {part for part in imported(path) if part not in (own, "__version__")}

    assert {part for part in parts if layer_of(part) >= layer_of(own)} == set()


def test_every_layer_of_the_table_exists() -> None:
    assert set(LAYERS) <= {part_of(path) for path in MODULES}


def test_a_lower_layer_is_told_from_a_higher_one(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "def f():\n    from peerseg.cli import main\n    import peerseg.runs\n    from peerseg import load\n"
    )

    assert list(imported(module)) == ["cli", "runs", "load"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_placement_knows_devices_and_ranks(path: Path) -> None:
    words = re.findall(r"world_size|\branks?\b|torch\.distributed|\.cuda\(", path.read_text(encoding="utf8"))

    assert part_of(path) == "placement" or words == []


def test_packages_are_one_folder_deep() -> None:
    assert {len(path.relative_to(SOURCE).parts) for path in MODULES} == {1, 2}


def test_names_that_say_nothing_are_not_used() -> None:
    empty = {"utils", "helpers", "common", "core", "engine", "manager"}
    assert {part for path in MODULES for part in path.relative_to(SOURCE).with_suffix("").parts} & empty == set()


def test_help_and_import_leave_torch_alone() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", HELP], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("HEAVY")]

    assert lines == [
        f"HEAVY {words}" for words in ([], ["demo"], ["train"], ["evaluate"], ["predict"], ["compare"], ["split"])
    ]
