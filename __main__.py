"""``python -m autograd_conformance``: the command."""

import sys

if not getattr(sys.flags, "safe_path", False):
    # Python puts the working folder first. What lies there must not take the place of what is installed.
    del sys.path[0]

from autograd_conformance.harness.program import main

main()
