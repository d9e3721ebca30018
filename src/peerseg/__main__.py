"""``python -m peerseg`` is the ``peerseg`` command."""

import sys

from peerseg.cli import main

sys.exit(main())
