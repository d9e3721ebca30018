"""Tables of a study, once as data: for the terminal and for a page."""

from dataclasses import dataclass

from peerseg.experiment.results import Study

NOTHING = "-"


@dataclass(frozen=True)
class Table:
    """A table of words.

    Args:
        heads: One a column.
        rows: Each as long as the heads.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self) -> str:
        """The table for a terminal, columns aligned."""
        widths = [max(len(row[k]) for row in (self.heads, *self.rows)) for k in range(len(self.heads))]

        def line(cells: tuple[str, ...]) -> str:
            first, *rest = (
                cell.ljust(w) if k == 0 else cell.rjust(w)
                for k, (cell, w) in enumerate(zip(cells, widths, strict=True))
            )
            return "  ".join([first, *rest]).rstrip()

        return "\n".join(line(row) for row in (self.heads, *self.rows))

    def markdown(self) -> str:
        """The table for a page in Markdown."""
        rule = tuple("---" if k == 0 else "---:" for k in range(len(self.heads)))
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (self.heads, rule, *self.rows))


def mean_table(study: Study) -> Table:
    """Mean IoU of every arm under every vote.

    Args:
        study: A finished study.

    Returns:
        One row an arm; the spread over the seeds in brackets.
    """
    votes = study.votes()
    rows = [(arm, *(_cell(study, arm, vote, "miou") for vote in votes)) for arm in study.scores]
    return Table(("arm", *votes), tuple(rows))


def class_table(study: Study, answers: dict[str, str], names: tuple[str, ...]) -> Table:
    """IoU of every class.

    Args:
        study: A finished study.
        answers: Arm -> the vote it is shown under.
        names: The classes.

    Returns:
        One row a class, one column an arm.
    """
    heads = tuple(f"{arm} ({vote})" for arm, vote in answers.items())
    rows = [(name, *(_cell(study, arm, vote, f"iou:{name}") for arm, vote in answers.items())) for name in names]
    return Table(("class", *heads), tuple(rows))


def _cell(study: Study, arm: str, vote: str, column: str) -> str:
    spread = study.spread(arm, vote, column)
    return NOTHING if spread is None else str(spread)
