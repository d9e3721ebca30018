"""Numbers into the documentation: what stands between two markers is replaced by what was measured."""

import re
from pathlib import Path

from peerseg.errors import PeersegError
from peerseg.report.table import Table

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "costs.md"


def write_block(name: str, text: str) -> None:
    """Replace what a block of the page holds.

    Args:
        name: Between ``<!-- NAME -->`` and ``<!-- end -->``.
        text: The new content.
    """
    page = PAGE.read_text(encoding="utf8")
    found = re.subn(
        rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}\n{text}\n\n{m[2]}", page, flags=re.DOTALL
    )
    if found[1] != 1:
        raise PeersegError(f"{PAGE} has {found[1]} blocks {name!r}, expected one: add its two markers")
    PAGE.write_text(found[0], encoding="utf8")


def write_table(name: str, table: Table) -> None:
    """Write a table into its block, and print it.

    Args:
        name: Of the block.
        table: What was measured.
    """
    print(f"\n{name}\n{table.text()}", flush=True)
    write_block(name, table.markdown())


def write_chart(name: str, svg: str) -> None:
    """Write a chart beside the page.

    Args:
        name: Of the file.
        svg: The chart.
    """
    (DOCS / f"costs-{name}.svg").write_text(svg + "\n", encoding="utf8")
