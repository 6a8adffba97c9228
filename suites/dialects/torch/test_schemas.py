"""The schemas of functions with annotations, and the operators that have them."""

import inspect
from itertools import count
from typing import List, Optional, Sequence  # noqa: UP035 - what annotations may be made of

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor, device, dtype, types

from autograd_conformance.harness.testing.marks import keeps

# Annotations that are strings use these names.
__all__ = ("Optional", "Sequence", "dtype", "types")

SPACE = "autograd_conformance_inferred"
_COUNT = count()
NAMES = ("x", "y", "scale")

# Types of parameters, as they are written, with those of the schema.
TYPES = {
    "Tensor": "Tensor",
    "torch.Tensor": "Tensor",
    "Optional[Tensor]": "Tensor?",
    "List[Tensor]": "Tensor[]",
    "Sequence[Optional[Tensor]]": "Tensor?[]",
    "int": "SymInt",
    "Optional[int]": "SymInt?",
    "list[int]": "SymInt[]",
    "list['int']": "SymInt[]",
    "Optional[Sequence[int]]": "SymInt[]?",
    "float": "float",
    "List[float]": "float[]",
    "Optional[List[float]]": "float[]?",
    "bool": "bool",
    "Sequence[bool]": "bool[]",
    "str": "str",
    "Optional[str]": "str?",
    "types.Number": "Scalar",
    "Optional[types.Number]": "Scalar?",
    "List[types.Number]": "Scalar[]",
    "dtype": "ScalarType",
    "Optional[dtype]": "ScalarType?",
    "device": "Device",
    "Optional[torch.device]": "Device?",
}
# For some of them, defaults with what the schema has for each.
DEFAULTS = {
    "int": {3: "3", -1: "-1"},
    "float": {0.5: "0.5"},
    "bool": {True: "True"},
    "str": {"mean": '"mean"'},
    "types.Number": {2: "2"},
    "dtype": {torch.float16: "float16"},
    "device": {torch.device("cpu"): '"cpu"'},
    **{each: {None: "None"} for each in TYPES if each.startswith("Optional")},
}
# Types of results.
RESULTS = {
    "None": "()",
    "Tensor": "Tensor",
    "List[Tensor]": "Tensor[]",
    "list[Tensor]": "Tensor[]",
    "int": "SymInt",
    "types.Number": "Scalar",
    "tuple[Tensor, float]": "(Tensor, float)",
    "tuple[Tensor, bool, List[Tensor]]": "(Tensor, bool, Tensor[])",
}
NOTHING = inspect.Parameter.empty


def _function(parameters, result):
    """A function with these parameters and type of the result."""

    def function(*args, **options):
        raise AssertionError("only its signature is used")

    function.__signature__ = inspect.Signature(parameters, return_annotation=result)
    return function


def _parameter(name, annotation, default=NOTHING, kind=inspect.Parameter.POSITIONAL_OR_KEYWORD):
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


X = inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Tensor)


def _as_written(text, as_text):
    """An annotation as a string, as with ``from __future__ import annotations``, or as the type."""
    # A string within a string is read by no release.
    return text if as_text and "'" not in text else eval(text)


@st.composite
def _parameters(draw):
    """Parameters of a function: the name, the type, the default and its text, and whether it is keyword-only."""
    names = NAMES[: draw(st.integers(0, len(NAMES)))]
    first = draw(st.integers(0, len(names)))
    found, defaults = [], False
    for i, name in enumerate(names):
        # After a parameter with a default all others by position have one.
        some = sorted(DEFAULTS) if defaults and i < first else list(TYPES)
        text = draw(st.sampled_from(some))
        known = list(DEFAULTS.get(text, {}).items())
        chosen = draw(st.sampled_from(known if defaults and i < first else [(NOTHING, ""), *known]))
        defaults = defaults or chosen[0] is not NOTHING
        # No operator has tensors by keyword alone.
        found.append((name, text, *chosen, i >= first and "Tensor" not in text))
    return sorted(found, key=lambda each: each[4])


def _schema(parameters, result, changed, name):
    """The schema by the tables here."""
    words, star = [], False
    for i, (each, text, _, default, alone) in enumerate(parameters):
        kind = TYPES[text]
        if each in changed or (changed == "unknown" and kind.startswith("Tensor")):
            kind = kind.replace("Tensor", f"Tensor(a{i}!)", 1)
        words += ["*"] if alone and not star else []
        star = star or alone
        words.append(f"{kind} {each}" + (f"={default}" if default else ""))
    return f"{name or ''}({', '.join(words)}) -> {RESULTS[result]}"


def _may_follow(parameters):
    """Whether Python takes these parameters in this order."""
    by_position = [default is NOTHING for _, _, default, _, alone in parameters if not alone]
    return by_position == sorted(by_position, reverse=True)


@keeps("LIB-22", examples=6)
def test_a_schema_is_that_of_the_annotations(subject, data):
    """It has the name, the parameters with defaults and what changes, and the result, however types are written."""
    parameters = subject.draw(data, _parameters().filter(_may_follow), "parameters")
    result = subject.draw(data, tuple(RESULTS), "result")
    as_text = subject.draw(data, (False, True), "annotations are strings")
    name = subject.draw(data, (None, "scaled"), "op_name")
    tensors = [each for each, text, *_ in parameters if "Tensor" in text]
    changed = subject.draw(data, st.just("unknown") | st.sets(st.sampled_from(tensors or ["x"])), "mutates_args")
    changed = changed if tensors or changed == "unknown" else set()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    function = _function(
        [_parameter(n, _as_written(text, as_text), default, kinds[alone]) for n, text, default, _, alone in parameters],
        _as_written(result, as_text),
    )
    options = {} if name is None else {"op_name": name}
    infer = lambda: torch.library.infer_schema(function, mutates_args=changed, **options)  # noqa: E731
    got = subject.assert_accepted(infer, "infer_schema")
    subject.assert_equal("schema", got=got, expected=_schema(parameters, result, changed, name))


# What no schema has: the parameter, what changes, the type of the result, and words of the message.
WRONG = {
    "a parameter without a type": (_parameter("scale", NOTHING), (), Tensor, ["scale", "annotation"]),
    "a dict": (_parameter("scale", dict), (), Tensor, ["scale", "unsupported"]),
    "a tuple": (_parameter("scale", tuple[int, ...]), (), Tensor, ["scale", "For example, list[int]"]),
    "a tuple of several types": (_parameter("scale", tuple[int, float]), (), Tensor, ["scale", "Tuple"]),
    "a name that is no type": (_parameter("scale", "Unheard"), (), Tensor, ["Unheard"]),
    "a string that is no expression": (_parameter("scale", "int["), (), Tensor, ["int["]),
    "any number of arguments": (_parameter("scale", int, kind=inspect.Parameter.VAR_POSITIONAL), (), Tensor, []),
    "any keywords": (_parameter("scale", int, kind=inspect.Parameter.VAR_KEYWORD), (), Tensor, []),
    "a list as a default": (_parameter("scale", List[int], [1]), (), Tensor, ["scale", "default"]),  # noqa: UP006
    "a number that changes": (_parameter("scale", int), {"scale"}, Tensor, ["scale"]),
    "a change of what is no parameter": (_parameter("scale", int), {"other"}, Tensor, ["other"]),
    "no type of the result": (_parameter("scale", int), (), NOTHING, ["return type annotation"]),
    "text as a result": (_parameter("scale", int), (), str, ["Return", "str"]),
    "text in a tuple": (_parameter("scale", int), (), tuple[Tensor, str], ["Return", "str"]),
    "another word than unknown": (_parameter("scale", int), "some", Tensor, ["unknown"]),
}


# What a function with a tag takes beside the tensors that it changes.
OTHERS = st.lists(st.sampled_from(("Tensor", "float", "Optional[Tensor]", "list[int]")), max_size=2)


@keeps("LIB-22", variant="tags")
def test_a_tag_says_which_arguments_come_back(subject, data):
    """With the tag inplace the result is the first argument, with the tag out results are those to fill, in order."""
    others = subject.draw(data, OTHERS, "types of other parameters")
    count = subject.draw(data, (0, 1, 2, 3), "tensors to fill, 0 for the tag inplace")
    listed = subject.draw(data, (False, True), "the tag is in a list")
    tag = torch.Tag.out if count else torch.Tag.inplace
    first, filled = ([], ["c", "a", "b"][:count]) if count else (["x"], [])
    changed = {*first, *filled}
    parameters = [
        *((each, "Tensor", NOTHING, "", False) for each in first),
        *((f"other{i}", text, NOTHING, "", False) for i, text in enumerate(others)),
        *((each, "Tensor", NOTHING, "", True) for each in filled),
    ]
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    function = _function(
        [_parameter(name, eval(text), kind=kinds[alone]) for name, text, *_, alone in parameters],
        tuple[(Tensor,) * count] if count > 1 else Tensor,
    )
    tags = [tag] if listed else tag
    infer = lambda: torch.library.infer_schema(function, mutates_args=changed, tags=tags)  # noqa: E731
    got = subject.assert_accepted(infer, "infer_schema with a tag")
    results = [f"Tensor(a{i}!)" for i, (name, *_) in enumerate(parameters) if name in changed]
    result = results[0] if count < 2 else f"({', '.join(results)})"
    without = _schema(parameters, "Tensor", changed, None).removesuffix("Tensor")
    subject.assert_equal("schema", got=got, expected=without + result)


def _alone(name, annotation=Tensor):
    return _parameter(name, annotation, kind=inspect.Parameter.KEYWORD_ONLY)


# What does not fit a tag: the tag, the parameters, what changes, and the type of the result.
UNFIT = {
    "no tensor first": ("inplace", [_parameter("scale", float), X], {"x"}, Tensor),
    "a change of the second argument": ("inplace", [_parameter("y", Tensor), X], {"x"}, Tensor),
    "a further change": ("inplace", [X, _parameter("y", Tensor)], {"x", "y"}, Tensor),
    "unknown changes": ("inplace", [X], "unknown", Tensor),
    "no result": ("inplace", [X], {"x"}, None),
    "a tensor to fill by position": ("out", [X, _parameter("y", Tensor)], {"y"}, Tensor),
    "a list to fill": ("out", [X, _alone("out", list[Tensor])], {"out"}, Tensor),
    "nothing to fill": ("out", [X], (), Tensor),
    "one result for two tensors": ("out", [X, _alone("out"), _alone("second")], {"out", "second"}, Tensor),
}


@keeps("LIB-22", variant="unfit")
def test_what_does_not_fit_a_tag_is_refused(subject, data):
    """A function that changes or returns other arguments than its tag says is refused, and the message has the tag."""
    unfit = subject.draw(data, tuple(UNFIT), "unfit")
    name, parameters, changed, result = UNFIT[unfit]
    tag, function = getattr(torch.Tag, name), _function(parameters, result)
    infer = lambda: torch.library.infer_schema(function, mutates_args=changed, tags=tag)  # noqa: E731
    subject.assert_raises(ValueError, infer, f"a function with {unfit}", naming=[f"torch.Tag.{name}"])


@keeps("LIB-22", variant="refused")
def test_what_no_schema_has_is_refused(subject, data):
    """A message names the parameter, or what is wrong with the result or with mutates_args."""
    wrong = subject.draw(data, tuple(WRONG), "wrong")
    parameter, changed, result, words = WRONG[wrong]
    first = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and subject.draw(data, st.booleans(), "is first")
    second = X if parameter.default is NOTHING else X.replace(default=None)
    function = _function([parameter, second] if first else [X, parameter], result)
    infer = lambda: torch.library.infer_schema(function, mutates_args=changed)  # noqa: E731
    subject.assert_raises(ValueError, infer, f"a schema with {wrong}", naming=words)


@keeps("LIB-03", variant="schema")
def test_a_schema_that_is_given_is_that_of_the_operator(subject, data):
    """A function without annotations has the defaults and changes of its schema, which mutates_args must not deny."""
    _assert_as_its_schema(subject, data, "custom_op")


@keeps("LIB-23", variant="schema")
def test_a_schema_that_is_given_is_that_of_a_triton_op(subject, data):
    """triton_op takes a schema as custom_op does."""
    _assert_as_its_schema(subject, data, "triton_op")


def _assert_as_its_schema(subject, data, by):
    """An operator of a function without annotations has what its schema says."""
    changes = subject.draw(data, (False, True), "x changes")
    said = subject.draw(data, (False, True), "mutates_args says so")
    given = subject.draw(data, ((), (5.0,), (-1.0,)), "a, if it is passed")
    values = subject.draw(data, st.lists(st.sampled_from((1.0, -2.0)), min_size=2, max_size=2), "x")

    def function(x, a=2.0):
        y = x + a
        return (x.add_(1) if changes else x, y)[1]

    def define():
        mark = "(a!)" if changes else ""
        schema = f"(Tensor{mark} x, float a=2.0) -> Tensor"
        names = {"x"} if said else ()
        # A faulty torch may keep the rules for modes of an operator with this name.
        return getattr(torch.library, by)(f"{SPACE}::given_{next(_COUNT)}", function, mutates_args=names, schema=schema)

    if changes != said:
        facts = ["mutates_args", "schema"]
        subject.assert_raises(ValueError, define, "a schema that mutates_args denies", naming=facts)
        return
    op = subject.assert_accepted(define, "an operator with a schema")
    x = subject.tensor(values)
    y, before = op(x, *given), np.array(values)
    subject.assert_same("output", got=y, expected=before + (given or (2.0,))[0])
    subject.assert_same("x afterwards", got=x, expected=before + changes)
    subject.assert_equal("whether x has changed", got=x._version > 0, expected=changes)


@keeps("LIB-06", variant="no-tensors")
def test_an_operator_without_tensors_has_a_device(subject, data):
    """Defined for a device it is refused without an argument device, and with one its kernel runs there."""
    named = subject.draw(data, ("device", "size", "place"), "second parameter")
    for_device = subject.draw(data, (True, False), "defined for a device")
    mine = subject.tensor([1.0]).device

    def function(n, other):
        return torch.full((n,), 7.0, device=mine)

    second = _parameter(named, int if named == "size" else device)
    function.__signature__ = inspect.Signature([_parameter("n", int), second], return_annotation=Tensor)
    options = {"device_types": mine.type} if for_device else {}
    define = lambda: torch.library.custom_op(f"{SPACE}::filled", function, mutates_args=(), **options)  # noqa: E731
    if for_device and named != "device":
        facts = ["device: torch.device"]
        subject.assert_raises(ValueError, define, "an operator without tensors for a device", naming=facts)
    else:
        op = subject.assert_accepted(define, "an operator without tensors")
        got = op(2, {"size": 3}.get(named, mine))
        subject.assert_same("output", got=got, expected=np.full(2, 7.0))
