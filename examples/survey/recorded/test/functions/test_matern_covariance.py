"""What the test module of this name in gpytorch's repository has of distances."""

from gpytorch.kernels.kernel import Distance


def dist_func(x1, x2):
    return Distance()._dist(x1, x2)
