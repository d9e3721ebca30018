"""Reports: self-contained pages, charts and tables."""

from peerseg.report.page import report_run, report_study

__all__ = ["report_run", "report_study"]
