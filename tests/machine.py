"""The machine under the tests: its accelerator, if it has one, is left to the tests that ask for it."""

import os

AS_IT_IS = dict(os.environ)
"""The environment with the accelerator in sight."""

os.environ["CUDA_VISIBLE_DEVICES"] = ""
