"""A documented linear layer, as it is printed: the gradient of the bias loses its dimension with one output feature."""

implementation = "torch"
shown_by = "LinearSqueezedBias"
options = ["--properties", "VJP-REF"]
