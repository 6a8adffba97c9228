"""The array namespace ``xp`` and the autograd namespace ``ag`` that a body is written against.

Names and signatures are those of the Python array API standard (2024.12), as NumPy 2 has them, plus the four of
EXTRA_NAMES: axes are called ``axis``, ``flip`` takes one or several, ``arange`` and ``zeros`` take ``dtype`` and
``device``. In addition, a body uses operators, indexing, ``.shape``, ``.ndim``, ``.dtype`` and ``.device``; it never
changes an array in place, except through ``+=`` and ``*=`` where the Function is documented as in-place.
"""

ARRAY_NAMES = (
    "abs", "arange", "argmax", "argsort", "broadcast_to", "concat", "conj", "cos", "cosh", "exp", "expand_dims", "flip",
    "imag", "matmul", "matrix_transpose", "max", "mean", "ones_like", "permute_dims", "real", "reshape", "sign", "sin",
    "sinh", "sqrt", "stack", "sum", "take", "take_along_axis", "tanh", "where", "zeros", "zeros_like",
)  # fmt: skip

EXTRA_NAMES = {
    "copy": "copy(x): a new array with the same values, differentiable",
    "to_numpy": "to_numpy(x): x as a NumPy array, sharing memory where the device allows; not differentiable",
    "from_numpy": "from_numpy(a, like): a NumPy array as an array on the device of `like`; not differentiable",
    "sparse_matmul": "sparse_matmul(indices, values, shape, b): the product of the sparse matrix of that shape, which "
    "holds `values` at `indices` (two rows: row and column numbers; repeated positions add up), and the dense `b`",
}

AUTOGRAD_NAMES = {
    "Function": "the base class of a custom Function, with the class method `apply`",
    "once_differentiable": "the decorator that declares a backward not differentiable",
}
