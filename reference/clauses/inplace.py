"""Clauses on changes in place and on views."""

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "DIRTY-01",
        "documented",
        "An input that forward modifies, marks dirty and returns comes back as the same object, whose grad_fn is now "
        "the node of the call.",
        "Function: mark_dirty",
        needs="inplace requires_grad",
        fault="a dirty input comes back as a new tensor object",
    ),
    Clause(
        "DIRTY-02",
        "documented",
        "mark_dirty raises an input's version counter by one, also if its data changed where autograd cannot see it, "
        "and whether it is called before or after the change.",
        "Function: mark_dirty",
        needs="inplace numpy",
        fault="mark_dirty does not raise the version counter",
    ),
    Clause(
        "DIRTY-03",
        "documented",
        "If a Function changes and marks dirty a tensor that an earlier operation saved, the backward of that "
        "operation raises an error.",
        "Function: mark_dirty",
        needs="inplace saved_check",
        fault="the version counter of a dirty input is put back when apply returns",
    ),
    Clause(
        "DIRTY-04",
        "observed",
        "Marking a leaf that requires grad as dirty is an error while grad mode is on.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="inplace requires_grad",
        fault="a leaf that requires grad may be marked dirty",
    ),
    Clause(
        "DIRTY-05",
        "observed",
        "While grad mode is on it is an error to mark as dirty a view of a leaf that requires grad, one of several "
        "views from one operation, or a view made under no_grad.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="inplace requires_grad views",
        since="2.8",
        fault="a view of a leaf that requires grad may be marked dirty",
    ),
    Clause(
        "DIRTY-06",
        "documented",
        "A Function that changes a view in place and marks it dirty enters the history of the view's base, whose "
        "gradient accounts for the change.",
        "autograd mechanics: In-place operations with autograd",
        needs="inplace views",
        fault="the base of a view that was changed in place keeps its old history",
    ),
    Clause(
        "DIRTY-07",
        "documented",
        "A Function that changes a view in place may return one tensor only; more are an error.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="inplace views",
        fault="a second output in addition to a dirty view is accepted",
    ),
    Clause(
        "DIRTY-08",
        "documented",
        "A tensor that is marked dirty but not returned is an error, even if nothing is recorded.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="inplace",
        fault="a dirty tensor that is not returned is ignored",
    ),
    Clause(
        "DIRTY-09",
        "documented",
        "mark_dirty is for inputs: in a recorded call a tensor that is not one gives a warning, and anything but a "
        "tensor is an error.",
        "Function: mark_dirty",
        needs="inplace",
        fault="marking a tensor that is not an input gives no warning",
    ),
    Clause(
        "DIRTY-10",
        "documented",
        "A change in place without mark_dirty goes unnoticed: the input keeps its old grad_fn, and only the alias "
        "that apply returns has the Function's.",
        "Function: mark_dirty",
        needs="inplace requires_grad views",
        fault="an input that is returned is marked dirty by itself",
    ),
    Clause(
        "DIRTY-11",
        "observed",
        "A tensor that does not require grad may be marked dirty, and becomes part of the graph if another argument "
        "requires grad.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="inplace requires_grad",
        fault="a dirty tensor that did not require grad stays out of the graph",
    ),
    Clause(
        "DIRTY-12",
        "observed",
        "Under no_grad a tensor that requires grad may be marked dirty, even a leaf: it is modified, and what apply "
        "returns is a detached alias of it, not the tensor itself.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="inplace requires_grad views",
        fault="under no_grad apply returns the dirty tensor itself",
    ),
    Clause(
        "DIRTY-13",
        "documented",
        "If forward saves an input and then changes it in place, reading it from saved_tensors is an error.",
        "Function: save_for_backward",
        needs="inplace saved_check",
        fault="an input that forward changes after saving it is read back changed",
    ),
    Clause(
        "DIRTY-14",
        "observed",
        "A tensor marked both dirty and non-differentiable keeps its old history, and apply returns a detached alias "
        "of it.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="inplace nondifferentiable requires_grad views",
        fault="a dirty tensor marked non-differentiable takes the Function's grad_fn",
    ),
    Clause(
        "DIRTY-15",
        "documented",
        "setup_context may mark as dirty an input that forward changed, and may save it as the output that it is.",
        "Function: mark_dirty",
        needs="inplace",
        fault="saving a dirty output in setup_context counts as a further change of it",
    ),
    Clause(
        "DIRTY-16",
        "documented",
        "A Function that changes an input in place raises an error if another tensor refers to the input's storage.",
        "autograd mechanics: In-place operations with autograd",
        needs="inplace views",
        fault="a storage that other tensors refer to may be changed in place",
    ),
    Clause(
        "DIRTY-17",
        "documented",
        "A hook registered on a tensor before it is changed in place stays with the old grad_fn and sees the gradient "
        "for the old value; one registered later sees the gradient for the new value.",
        "autograd mechanics: Behavior of Tensor hooks when Tensor is modified in-place",
        needs="inplace requires_grad",
        fault="hooks move to the new grad_fn when their tensor is changed in place",
    ),
    Clause(
        "VIEW-01",
        "observed",
        "An input that forward returns as it is comes back as a view of it with the Function's grad_fn, so that the "
        "custom backward is used.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="requires_grad views",
        fault="an input returned as it is comes back as the same object",
    ),
    Clause(
        "VIEW-02",
        "observed",
        "An input that does not require grad and is returned as it is comes back as a view too, never as the input "
        "object.",
        "source: torch/csrc/autograd/custom_function.cpp",
        needs="requires_grad views",
        fault="a returned input that does not require grad comes back as the same object",
    ),
    Clause(
        "VIEW-03",
        "documented",
        "forward may return a view of an input, but it is an error to modify that output in place, or to use it after "
        "its base was modified.",
        "source: torch/csrc/autograd/variable.cpp",
        needs="inplace views",
        fault="an output that is a view of an input may be modified in place",
    ),
    Clause(
        "VIEW-04",
        "observed",
        "An output that is a view of a temporary made in forward must not be modified in place: trying to is an error.",
        "source: torch/csrc/autograd/variable.cpp",
        needs="inplace views",
        fault="an output that is a view of a temporary may be modified in place",
    ),
    Clause(
        "VIEW-05",
        "observed",
        "If several differentiable outputs of one call are views, modifying any of them in place is an error.",
        "source: torch/csrc/autograd/variable.cpp",
        needs="inplace views",
        fault="one of several outputs that are views may be modified in place",
    ),
)
