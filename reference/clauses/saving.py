"""Clauses on saved tensors, on memory, and on the class flags about both."""

from autograd_conformance.reference.clauses.definitions import Clause

CLAUSES = (
    Clause(
        "SAVE-01",
        "documented",
        "save_for_backward takes tensors and None, and ctx.saved_tensors gives them back in order, with None in its "
        "place.",
        "Function: save_for_backward",
        needs="context",
        fault="the saved tensors are read back without the None among them",
    ),
    Clause(
        "SAVE-02",
        "documented",
        "In a recorded call save_for_backward raises TypeError for anything that is neither a tensor nor None.",
        "extending: Step 2",
        needs="context",
        fault="objects that are not tensors are saved as None",
    ),
    Clause(
        "SAVE-03",
        "documented",
        "backward reads what was saved from ctx.saved_tensors, a tuple, which is empty if nothing was saved.",
        "Function: save_for_backward",
        needs="context",
        fault="ctx.saved_tensors is None if nothing was saved",
    ),
    Clause(
        "SAVE-04",
        "documented",
        "A saved output is read back as another tensor with the same storage and the call's node as grad_fn, a saved "
        "input as the same object.",
        "autograd mechanics: Saved tensors",
        needs="requires_grad",
        fault="a saved output is read back as a copy of its values",
    ),
    Clause(
        "SAVE-05",
        "documented",
        "Reading ctx.saved_tensors is an error if a saved tensor was modified in place since, directly or through a "
        "view or a detached alias.",
        "autograd mechanics: In-place correctness checks",
        needs="saved_check views",
        fault="changes in place are not checked when saved tensors are read",
    ),
    Clause(
        "SAVE-06",
        "documented",
        "A change made through .data, or through a NumPy array on the same memory, escapes the check of saved "
        "tensors, which are read back changed.",
        "Function: mark_dirty",
        needs="numpy saved_check",
        fault="a change through .data makes reading the saved tensor an error",
    ),
    Clause(
        "SAVE-07",
        "documented",
        "Saved tensors are checked for changes when ctx.saved_tensors is read, so that a backward that never reads it "
        "raises no error.",
        "autograd mechanics: In-place correctness checks",
        needs="saved_check",
        fault="saved tensors are checked before each backward, read or not",
    ),
    Clause(
        "SAVE-08",
        "documented",
        "Tensors stored on ctx as attributes are not checked for changes in place, and backward uses the values that "
        "they have when it runs.",
        "Function: save_for_backward",
        needs="saved_check",
        fault="a tensor attribute of ctx that was changed in place is an error",
    ),
    Clause(
        "SAVE-09",
        "documented",
        "After a backward pass that does not retain the graph, reading saved_tensors is an error, in another pass as "
        "well as from grad_fn.",
        "backward: retain_graph",
        fault="saved tensors can still be read after the graph was freed",
    ),
    Clause(
        "SAVE-10",
        "documented",
        "retain_graph=True keeps the saved tensors for another pass, and create_graph=True implies it by default.",
        "backward: retain_graph",
        needs="double_backward",
        fault="create_graph=True does not retain the graph",
    ),
    Clause(
        "SAVE-11",
        "observed",
        "A call that saved nothing, and whose backward does not read saved_tensors, can be differentiated twice "
        "without retain_graph.",
        "source: torch/csrc/autograd/python_function.cpp",
        fault="a second pass without retain_graph is an error for every node",
    ),
    Clause(
        "SAVE-12",
        "documented",
        "save_for_backward has no effect in backward: a later pass reads the tensors that were saved in forward or "
        "setup_context.",
        "Function: save_for_backward",
        needs="context",
        fault="save_for_backward in backward replaces the saved tensors",
    ),
    Clause(
        "SAVE-13",
        "documented",
        "Saving an inference tensor in a recorded call is an error.",
        "autograd mechanics: Inference Mode",
        needs="requires_grad",
        fault="inference tensors are cloned when they are saved",
    ),
    Clause(
        "SAVE-14",
        "documented",
        "graph.increment_version of a tensor, or of a list of them, counts as a change in place, once or several "
        "times: a backward that reads one from saved_tensors raises; inference tensors are accepted.",
        "graph: increment_version",
        quote="you only need to call this explicitly if you are doing inplace operation on the Tensor data in a way "
        "that Pytorch doesn't know about. [...] Can accept either a tensor, or a list of tensors.",
        needs="saved_check",
        fault="of several tensors increment_version takes the first",
    ),
    Clause(
        "MEM-01",
        "documented",
        "An output stored on ctx as an attribute is in a reference cycle with its grad_fn, and is not freed when its "
        "last outside reference goes.",
        "Function: save_for_backward",
        needs="memory",
        fault="ctx holds its tensor attributes by weak references",
    ),
    Clause(
        "MEM-02",
        "documented",
        "An output saved with save_for_backward is in no reference cycle: it is freed when its last reference goes.",
        "extending: Step 2",
        needs="memory",
        fault="save_for_backward also keeps the output object itself on ctx",
    ),
    Clause(
        "MEM-03",
        "documented",
        "A backward pass does not break the reference cycle of an output stored on ctx as an attribute.",
        "extending: Step 2",
        needs="memory",
        fault="backward deletes the outputs among the attributes of ctx",
    ),
    Clause(
        "MEM-04",
        "documented",
        "Tensors saved with save_for_backward are released as soon as the backward of their node is done, before the "
        "next node runs.",
        "extending: Step 2",
        needs="memory",
        fault="saved tensors are kept until the backward pass is over",
    ),
    Clause(
        "MEM-05",
        "documented",
        "A tensor stored on ctx as an attribute lives as long as the graph, also after the backward of its node is "
        "done.",
        "extending: Step 2",
        needs="memory",
        fault="ctx drops its tensor attributes as soon as backward is done",
    ),
    Clause(
        "MEM-06",
        "documented",
        "backward(create_graph=True) warns of the reference cycle between a leaf and its .grad, and recommends grad() "
        "instead.",
        "backward: create_graph",
        needs="accumulate double_backward",
        fault="backward(create_graph=True) gives no warning",
    ),
    Clause(
        "BOX-01",
        "documented",
        "With boxed_grads_call set to True, backward gets one mutable list with an entry for each output, and returns "
        "its gradients as usual.",
        "Function: boxed_grads_call",
        since="2.13",
        fault="backward gets a tuple instead of a list",
    ),
    Clause(
        "BOX-02",
        "documented",
        "With boxed_grads_call, removing an entry from the list of gradients frees that gradient while backward is "
        "still running.",
        "extending: Step 2",
        needs="memory",
        since="2.13",
        fault="the caller of backward keeps its own references to the listed gradients",
    ),
    Clause(
        "BOX-03",
        "observed",
        "boxed_grads_call and clear_saved_tensors_on_access have to be bools: applying a class with another value "
        "raises RuntimeError.",
        "source: torch/csrc/autograd/python_function.cpp",
        since="2.13",
        fault="class flags that are not bools are accepted, and their truth is used",
    ),
    Clause(
        "BOX-04",
        "documented",
        "A backward with boxed_grads_call that is declared once_differentiable makes a second derivative an error, as "
        "without the flag.",
        "extending: Step 3",
        needs="double_backward once_differentiable",
        since="2.13",
        fault="second derivatives leave out what a boxed once-differentiable backward gives",
    ),
    Clause(
        "BOX-05",
        "documented",
        "Under function transforms a backward with boxed_grads_call gets one mutable list, too.",
        "Function: boxed_grads_call",
        quote="When set to True on the Function subclass, backward receives grads as a single mutable list argument "
        "instead of individual args in an immutable tuple.",
        since="2.13",
        fault="under transforms a boxed backward gets a tuple",
    ),
    Clause(
        "CLEAR-01",
        "documented",
        "With clear_saved_tensors_on_access the node drops its references when saved_tensors is read: a tensor is "
        "freed with the last local variable that holds it.",
        "Function: clear_saved_tensors_on_access",
        needs="memory",
        since="2.11",
        fault="the node keeps its references when saved_tensors is read, although the flag is set",
    ),
    Clause(
        "CLEAR-02",
        "documented",
        "With clear_saved_tensors_on_access a second reading of saved_tensors is an error.",
        "extending: Step 2",
        since="2.11",
        fault="saved_tensors can be read twice although the flag is set",
    ),
    Clause(
        "CLEAR-03",
        "observed",
        "With clear_saved_tensors_on_access a second backward pass through the node is an error even with "
        "retain_graph, so that gradcheck cannot be used.",
        "source: torch/csrc/autograd/python_function.cpp",
        since="2.11",
        fault="retain_graph brings cleared saved tensors back for a second pass",
    ),
)
