"""Indices from mx.argsort and mx.argmax are uint32; torch and the array API's default have int64.

"Returns: array: The uint32 array containing indices ..." (docstring of mx.argsort): a difference.
"""

import sys

import mlx.core as mx

x = mx.array([3.0, 1.0, 2.0])
found = {str(mx.argsort(x).dtype), str(mx.argmax(x).dtype)}
print("holds" if found == {"mlx.core.int64"} else f"got: {found}; int64 would be as in torch")
sys.exit(found != {"mlx.core.int64"})
