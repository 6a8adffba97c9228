"""Where a script has a Function from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Source:
    """Where a script has its Function from.

    ``lines`` import or define it, and ``apply`` is the expression that is called. For a user's Function ``call`` is
    what that expression stands for, ``declaration`` the expression of its declaration (empty where a script cannot
    import that), ``given`` the arguments as they were declared, ``reference`` and ``soft`` the expressions of the
    declared functions with which results are compared, and ``literal_outputs`` says that outputs are compared with
    NumPy.
    """

    lines: str
    apply: str
    call: Callable[..., Any] | None = None
    declaration: str = ""
    given: Sequence[Any] = ()
    reference: str = ""
    soft: str = ""
    literal_outputs: bool = False
    backward_only: bool = False
