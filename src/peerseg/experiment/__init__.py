"""One experiment from settings: recipes, name tables, building, running, and the trained run that answers."""

from peerseg.experiment.settings import Settings, settings_of

__all__ = ["Settings", "settings_of"]
