"""Functions that a test writes by hand, from its own methods."""

from hypothesis import strategies as st

STYLES = st.booleans()


def define(subject, *bases, name="Custom", **methods):
    """A Function with these static methods, derived from ``bases`` or from the implementation's base class."""
    base = subject.implementation.ag.Function
    namespace = {method: staticmethod(function) for method, function in methods.items() if function is not None}
    return type(base)(name, bases or (base,), namespace)


def define_apply(subject, forward, backward=None, *, separate=False, name="Custom"):
    """The apply of a new Function whose ``forward`` takes no ctx; ``separate`` gives it a `setup_context`."""
    if separate:
        methods = {"forward": forward, "setup_context": lambda ctx, inputs, output: None}
    else:
        methods = {"forward": lambda ctx, *args: forward(*args)}
    return subject.implementation.function(define(subject, name=name, **methods, backward=backward))
