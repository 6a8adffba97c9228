"""What a call of the program does: which tensors it changes, and how its gradients are had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from autograd_conformance.harness.check.declaration.calling import Treatment, adapted
from autograd_conformance.harness.watching.links import Links, fresh
from autograd_conformance.implementations.protocol import Implementation, as_tuple
from autograd_conformance.reference.definitions import COMPLEX, FLOATING, REAL_OF


class Effects(NamedTuple):
    """What a call does: the slots of the tensors that require grad, or may, of those that it changes and returns, and
    of those that it leaves without memory.

    ``backward_only`` says that backward raises unless it is part of `.backward()`, and ``raised`` what it raises then.
    It ``draws`` if forward or backward takes random numbers.
    """

    tracked: tuple[int, ...]
    inplace: tuple[int, ...] = ()
    consumed: tuple[int, ...] = ()
    backward_only: bool = False
    raised: Exception | None = None
    draws: bool = False


def effects(function: Any, args: Sequence[Any], implementation: Implementation, dtype: str) -> Effects:
    """What a call in this dtype does, to its arguments, too.

    Where no tensor requires grad, all that get a gradient may.
    """
    trial = _Trial(function, args, implementation, dtype)
    before = [state.get() for state in implementation.random_states]
    found = trial.differentiated()
    found = found._replace(draws=before != [state.get() for state in implementation.random_states])
    try:
        copies = trial.copies()
        versions = {n: implementation.version(x) for n, x in copies.items()}
        with implementation.no_grad():
            outputs = as_tuple(trial.call(copies))
        consumed = tuple(n for n in versions if not _is_readable(copies[n], implementation))
        changed = [n for n, v in versions.items() if n not in consumed and implementation.version(copies[n]) != v]
        returned = (n for n in changed if any(implementation.shares_memory(y, copies[n]) for y in outputs))
        return found._replace(inplace=tuple(returned), consumed=consumed)
    except Exception:  # noqa: BLE001 - the tests report it
        return found


class _Trial:
    """Trials of a call, with floating-point numbers in one dtype."""

    def __init__(self, function: Any, args: Sequence[Any], implementation: Implementation, dtype: str) -> None:
        self._function, self._args = getattr(function, "apply", function), args
        self._implementation, self._dtype = implementation, dtype
        self._links = Links(args, implementation)
        self._tensors = [n for n, x in enumerate(args) if implementation.is_tensor(x)]

    def copies(self) -> dict[int, Any]:
        """Copies of the tensors by slot."""
        return {n: self._copy(self._args[n]) for n in self._tensors}

    def _copy(self, tensor: Any) -> Any:
        values, own = self._implementation.numpy(tensor), self._implementation.describe(tensor).dtype
        device = self._implementation.devices()[0]
        if own not in FLOATING:
            return self._implementation.array(values, own, device)
        dtype = self._dtype if own in COMPLEX else REAL_OF.get(self._dtype, self._dtype)
        return self._implementation.array(values, dtype, device)

    def call(self, tensors: Mapping[int, Any]) -> Any:
        """The outputs of a call with these tensors in their slots."""
        given = [tensors[n] if n in tensors else fresh(x) for n, x in enumerate(self._args)]
        return self._function(*self._links(given))

    def differentiated(self) -> Effects:
        """What going backward shows: with `.grad()`, and with `.backward()` if that raises."""
        implementation = self._implementation
        floating = [n for n in self._tensors if implementation.describe(self._args[n]).dtype in FLOATING]
        tracked = tuple(n for n in floating if implementation.requires_grad(self._args[n]))
        try:
            return self._with_gradients(tracked, floating, False)
        except Exception:  # noqa: BLE001 - the program may not do this
            pass
        try:
            return self._with_gradients(tracked, floating, True)
        except Exception as raised:  # noqa: BLE001 - the tests report it
            return Effects(tracked or tuple(floating), raised=raised)

    def _with_gradients(self, tracked: tuple[int, ...], floating: Sequence[int], backward_only: bool) -> Effects:
        gradients = self._gradients(tracked or tuple(floating), backward_only)
        return Effects(tracked or tuple(n for n, g in gradients.items() if g is not None), backward_only=backward_only)

    def _gradients(self, slots: tuple[int, ...], backward_only: bool) -> dict[int, Any]:
        """The gradients of the tensors in these slots, None for none."""
        mine, copies = adapted(self._implementation, Treatment(backward_only=backward_only)), self.copies()

        def f(*given: Any) -> Any:
            return self.call({**copies, **dict(zip(slots, given, strict=True))})

        outputs, pullback = mine.vjp(f, [copies[slot] for slot in slots])
        ends = [mine.xp.ones_like(y) if mine.requires_grad(y) else None for y in outputs]
        return dict(zip(slots, pullback(ends), strict=True))


def _is_readable(tensor: Any, implementation: Implementation) -> bool:
    try:
        implementation.numpy(tensor)
    except RuntimeError:
        return False
    return True
