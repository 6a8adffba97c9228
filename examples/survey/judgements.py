"""What a person says of the accusations: a fault, with the script that shows it, or on purpose, with the reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Judgement:
    """Of accusations that match ``what``, a pattern of package, Function and accusation.

    A ``fault`` has a ``script`` of ``findings`` that shows it with the package alone. What is ``on purpose`` is true of
    the Function as well, and its documentation or code says that it is meant: a declaration has a word for it. With
    ``other arguments`` the Function was called as it is not meant to be: what was assumed is wrong.
    """

    what: str
    kind: str
    sentence: str
    script: str = ""


def fault(what: str, script: str, sentence: str) -> Judgement:
    return Judgement(what, "fault", sentence, script)


def other_arguments(what: str, sentence: str) -> Judgement:
    return Judgement(what, "other arguments", sentence)


def on_purpose(what: str, sentence: str) -> Judgement:
    return Judgement(what, "on purpose", sentence)


JUDGEMENTS = [
    fault(
        "sinabs * misfits FWD-DTYPE",
        "sinabs_dtype.py",
        "Spikes are float32 for a membrane in float64, and the documentation has no word about it.",
    ),
    fault(
        "sinabs * not detected VJP-INPLACE-SAFE",
        "sinabs_threshold_inplace.py",
        "The threshold is kept on ctx: a threshold that changes in place before backward makes gradients wrong.",
    ),
    other_arguments(
        "sinabs * not finite VJP-FINITE",
        "The threshold was 0, and the surrogate gradient divides by it: a neuron's threshold is positive.",
    ),
    other_arguments("torch_struct SimplexProject raises VJP-NONE", "The input had no dimension to project along."),
    fault(
        "torch_struct SimplexProject wrong VJP-FD*",
        "gallery/torch_struct_simplex.py",
        "The gradient is that of sparsemax, but the value has the norm of w in place of half of its square.",
    ),
    other_arguments(
        "torchkbnufft KbTable* raises VJP-FD",
        "There were two tables, but another number of dimensions: one table is needed for each dimension.",
    ),
    on_purpose(
        "memcnn InvertibleCheckpointFunction* raises VJP-REF",
        "backward refuses .grad(), and its error says to use .backward().",
    ),
    on_purpose(
        "memcnn InvertibleCheckpointFunction* raises FWD-MASK",
        "With keep_input=False the input is emptied in forward, as documented: it cannot be used a second time.",
    ),
    other_arguments(
        "memcnn InvertibleCheckpointFunction* raises VJP-PURE/leaves",
        "The weights were not those that the given functions use.",
    ),
    *(
        fault(
            f"memcnn {function} wrong VJP-FD*",
            "memcnn_blocks_gradient.py",
            "The gradient of the input is wrong: its halves are swapped, or a scale factor is left out.",
        )
        for function in (
            "AdditiveBlockInverseFunction",
            "AffineBlockInverseFunction",
            "AffineBlockFunction2",
            "AffineBlockInverseFunction2",
        )
    ),
    other_arguments("memcnn A*Block* wrong VJP-FD*", "The weights were not those that the given modules use."),
    fault(
        "memcnn A*Block* not detected VJP-INPLACE-SAFE",
        "memcnn_blocks_inplace.py",
        "An input or a weight that changes in place before backward makes gradients wrong, and nothing is raised.",
    ),
    fault(
        "snntorch * misfits FWD-DTYPE",
        "snntorch_dtypes.py",
        "Spikes are float32 for a membrane in float64, and the documentation has no word about it.",
    ),
    fault(
        "snntorch Sigmoid not finite *",
        "gallery/snntorch_sigmoid_nan.py",
        "The surrogate gradient is NaN far below the threshold, where it should be 0: exp overflows.",
    ),
    on_purpose(
        "snntorch StochasticSpikeOperator wrong ENV-RANDOM",
        "Below the threshold the gradient is sampled, as its documentation says.",
    ),
    fault(
        "snntorch LeakySpikeOperator raises VJP-NONE",
        "snntorch_leaky.py",
        "backward returns one gradient for two arguments, so that it raises always.",
    ),
]
