"""What is generated: calls of a Function, and Functions themselves. Everything prints as text that makes it again.

* `calls.calls` draws a `calls.Call` of a documented Function; `scope.Scope` says what may vary from call to call.
  `calls.tensor_values` and `calls.cotangent_values` make the NumPy arrays of a call, `calls.parse` reads a printed one.
* `generated_functions` draws Functions for the contract of ctx and engine: `polynomials`, `changes`, `passings`,
  `storings`; and `views` of tensors.
* `shapes`, `values` and `layouts` hold what tensors are made of: shapes that fit a Function's domain, fills and special
  values, memory layouts. They are finite lists, the simplest first, from which `calls` draws.
* `compositions` lists the operations before and after a Function in a longer computation.
* `drawn` makes arguments of a user's Function from Hypothesis strategies.
* `descriptors` reads the arguments of a user's Function from texts such as ``float[n,m] positive``.

A draw shrinks towards the simplest call: one element, float64, contiguous, ones.

>>> calls(FUNCTIONS["Exp"]).example()
Call('Exp', args=(Tensor((1, 3), requires_grad=True, fill='dense', specials=((1, 0.125),)),),
     cotangents=(Cotangent('normal', layout='conjugated'),), seed=551)

>>> calls(FUNCTIONS["Exp"], PLAIN).example()
Call('Exp', args=(Tensor((1, 1), requires_grad=True),), cotangents=(Cotangent(),))

Import from the modules; this package imports none of them by itself.
"""
