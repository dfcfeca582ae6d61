"""`python -m playground`: a real Kubernetes without machines, from the command line."""

from __future__ import annotations

import sys

from playground.commands.table import main

sys.exit(main(sys.argv[1:]))
