"""What runs within a user's program and sees the calls of its custom Functions.

A file ``sitecustomize.py`` loads this package by its path, in each Python process of the program: it uses the standard
library only, and the program's own torch.
"""

from __future__ import annotations

import importlib
import json
import os

# What to do in each process, as JSON: the module of this package, and the options of its `start`. The program's child
# processes inherit it.
VARIABLE = "AUTOGRAD_CONFORMANCE_INSIDE"


def start() -> None:
    """Do what the environment asks for, from now on or as soon as torch is imported."""
    asked = json.loads(os.environ.get(VARIABLE) or "{}")
    if asked:
        importlib.import_module(f"{__name__}.{asked.pop('module')}").start(**asked)
