"""Clauses on batching: a Function's rules for vmap, and what vmap takes and refuses."""

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "VMAP-01",
        "documented",
        "vmap over a Function that has no batching rule raises.",
        "extending torch.func: torch.vmap Support",
        needs="vmap",
        fault="a Function without a batching rule gets its batched tensors as they are",
    ),
    Clause(
        "VMAP-02",
        "documented",
        "With generate_vmap_rule the rules for forward, backward and jvp are derived, so that vmap of grad and grad "
        "of vmap equal a loop over the batch.",
        "extending torch.func: Automatically generate a vmap rule",
        needs="vmap",
        fault="the generated rule averages the gradient of an unbatched input over the batch",
    ),
    Clause(
        "VMAP-03",
        "documented",
        "Batching a Function that both sets generate_vmap_rule and defines vmap raises.",
        "Function: vmap",
        needs="vmap",
        fault="generate_vmap_rule silently wins over a vmap method",
    ),
    Clause(
        "VMAP-04",
        "documented",
        "The vmap method gets info with batch_size and randomness, an int or None per argument in in_dims, and "
        "tensors that carry the batch dimension.",
        "Function: vmap",
        needs="vmap",
        fault="in_dims leaves out arguments that are not tensors",
    ),
    Clause(
        "VMAP-05",
        "documented",
        "The vmap method returns (output, out_dims), where out_dims mirrors output, or is one int for all, and None "
        "means not batched; anything else raises.",
        "Function: vmap",
        needs="vmap",
        fault="out_dims of another structure is replaced by 0 for every output",
    ),
    Clause(
        "VMAP-06",
        "observed",
        "Where no argument is batched at the current level the vmap method is not called.",
        "source: torch/_functorch/autograd_function.py",
        needs="vmap",
        fault="the vmap method is called even if no argument is batched",
    ),
    Clause(
        "VMAP-07",
        "documented",
        "A backward pass over a batch of cotangents is right for a backward made of framework operations and raises "
        "for one that computes with NumPy.",
        "grad: is_grads_batched",
        needs="batched_cotangents numpy",
        fault="the first cotangent of a batch is used for every entry of it",
    ),
    Clause(
        "VMAP-08",
        "documented",
        "vmap keeps the semantics of the Function: its own backward, mathematical or not, gives the gradient of "
        "a loop of calls.",
        "extending torch.func: Defining the vmap staticmethod",
        needs="vmap",
        fault="under vmap forward's operations are differentiated instead of calling backward",
    ),
    Clause(
        "VMAP-09",
        "documented",
        "With generate_vmap_rule setup_context gets the tensors of one call, and what it tells ctx counts as without "
        "vmap: attributes, what is saved for backward or jvp, outputs that are not differentiable, changed inputs.",
        "extending torch.func: Automatically generate a vmap rule",
        quote="If your torch.autograd.Function fulfills the following additional constraints, then we are able to "
        "generate a vmap rule for it.",
        needs="jvp vmap nondifferentiable inplace",
        fault="the generated rule gives setup_context the whole batch",
    ),
    Clause(
        "VMAP-10",
        "documented",
        "Under a generated rule vmap's randomness holds for forward, backward and jvp: random numbers are an error, "
        "the same in every call, or different.",
        "vmap: randomness",
        quote="If 'different', the randomness for each batch will be different. If 'same', the randomness will be the "
        "same across batches. If 'error', any calls to random functions will error.",
        needs="jvp vmap",
        fault="backward of a generated rule may draw no random numbers",
    ),
    Clause(
        "VMAP-11",
        "documented",
        "vmap takes in_dims of the structure of the arguments, out_dims of that of the outputs, and chunk_size, and "
        "passes keyword arguments on without batching them; outputs and gradients are those of a loop of calls.",
        "vmap: in_dims",
        quote="If the input is a Python struct, in_dims must be a tuple containing a struct matching the shape of the "
        "input. [...] For any function that uses kwargs, the returned function will not batch the kwargs but will "
        "accept kwargs",
        needs="vmap",
        fault="with chunk_size the outputs of chunks are put together along the first dimension",
    ),
    Clause(
        "VMAP-12",
        "documented",
        "vmap raises for a function that returns anything but tensors, for in_dims and out_dims that do not fit, and "
        "for arguments of different sizes, and says which.",
        "vmap: in_dims",
        needs="vmap",
        fault="in_dims of another structure are taken as they come",
    ),
    Clause(
        "VMAP-13",
        "documented",
        "Under vmap .item(), conditions, dynamic shapes and the keyword out raise for batched values, in a Function's "
        "methods, too; what depends on shapes, or on values that all calls share, is as in one call.",
        "vmap: limitations",
        quote="We don't yet support vmap over data-dependent control flow. [...] However, any control flow that is not "
        "dependent on the values in vmap'ed tensors will work",
        needs="jvp vmap",
        fault="under vmap .item() gives the value of the first call",
    ),
    Clause(
        "VMAP-14",
        "documented",
        "Under vmap a change in place of what is not batched by what is batched raises, in forward, too; others are "
        "right.",
        "vmap: limitations",
        quote="vmap will raise an error if it encounters an unsupported PyTorch in-place operation and it will succeed "
        "otherwise.",
        needs="vmap inplace",
        fault="what is not batched gets the values of the first call",
    ),
    Clause(
        "VMAP-15",
        "documented",
        "vmap calls its function, and each method of a Function with a generated rule, once for a batch, or once for "
        "each chunk.",
        "vmap: limitations",
        quote="vmap executes f a single time, so all side effects only happen once.",
        needs="jvp vmap",
        fault="vmap calls its function for each entry of the batch",
    ),
)
