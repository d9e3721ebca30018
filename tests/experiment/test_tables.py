"""Name tables: every row leads to what it says, and an import path is checked before it is called."""

import inspect
import sys
from pathlib import Path

import pytest

from peerseg.errors import PeersegError
from peerseg.experiment.tables import FIXED, INTERFACES, TABLES, imported, target

ROWS = [(section, name) for section, table in TABLES.items() for name in table]


@pytest.mark.parametrize(("section", "name"), ROWS)
def test_every_row_leads_to_its_interface(section: str, name: str) -> None:
    found, interface = target(section, name), imported(INTERFACES[section])
    made = found if inspect.isclass(found) else inspect.signature(found, eval_str=True).return_annotation

    assert issubclass(made, interface)
    assert not inspect.isabstract(made)


@pytest.mark.parametrize("section", FIXED)
def test_a_section_that_names_nothing_has_one_target(section: str) -> None:
    assert target(section, None) is imported(FIXED[section])


@pytest.mark.parametrize(("section", "name"), ROWS)
def test_a_misspelled_name_is_met_with_the_right_one(section: str, name: str) -> None:
    with pytest.raises(PeersegError, match=f"{section}.name is '{name}x'; did you mean '{name}'"):
        target(section, f"{name}x")


@pytest.mark.parametrize("name", [None, "nothing-like-it", 3])
def test_a_name_that_is_no_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(PeersegError, match=r"method.name is .*; known: cct, .*, ncps, ncps-cutmix, .*, unimatch"):
        target("method", name)


def test_an_import_path_can_name_a_class_of_one_s_own() -> None:
    assert target("method", "peerseg.methods.ncps:NCPS") is target("method", "ncps")


def test_an_import_path_is_looked_for_in_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tables_lab.py").write_text("from peerseg.methods import Supervised as Mine\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in sys.path if path])
    assert target("method", "tables_lab:Mine") is target("method", "supervised")


@pytest.mark.parametrize(
    "path", ["json:JSONDecoder", "json:loads", "peerseg.networks.small:SmallNetwork", "peerseg.errors:__doc__"]
)
def test_what_derives_from_nothing_of_ours_is_refused(path: str) -> None:
    with pytest.raises(
        PeersegError, match=f"method.name is '{path}', which is no class derived from peerseg.methods.base.Method"
    ):
        target("method", path)


@pytest.mark.parametrize("path", ["no_such_module_here:Swap", "peerseg.methods.ncps:Swap", ":Swap", "peerseg:", ".a:b"])
def test_what_cannot_be_imported_is_refused(path: str) -> None:
    with pytest.raises(PeersegError, match=rf"'{path}' cannot be imported \(.*\): expected 'module:Class'"):
        target("method", path)


def test_a_class_that_leaves_something_out_is_refused() -> None:
    with pytest.raises(PeersegError, match=r"peerseg.methods.base:Method.*(abstract|wants)"):
        target("method", "peerseg.methods.base:Method")
