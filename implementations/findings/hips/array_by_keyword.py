"""A traced array that is passed by keyword is differentiated through what a primitive does inside, not by its rule.

autograd/tracer.py, primitive: "Wraps a function so that its gradient can be specified and its invocation can be
recorded."
"""

import sys

from autograd import extend, grad

f = extend.primitive(lambda x, w: x * w)
extend.defvjp(f, lambda ans, x, w: lambda g: 7 * g, lambda ans, x, w: lambda g: 7 * g)
got = grad(lambda w: f(1.0, w=w))(2.0)
print("got:", got)
print("expected:", 7.0)
if got != 7.0:
    sys.exit(1)
print("holds")
