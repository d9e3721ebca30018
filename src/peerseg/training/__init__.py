"""Training: the loop, its optimizer steps and its checkpoints."""

from peerseg.training.loop import Task, fit
from peerseg.training.optimize import Optimization

__all__ = ["Optimization", "Task", "fit"]
