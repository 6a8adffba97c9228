"""The sentences that PyTorch documents about torch::autograd::Function, in C++."""
