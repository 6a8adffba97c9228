"""What an operation gets, and how its output is used."""

import operator

import mygrad as mg
import numpy as np
from hypothesis import strategies as st
from mygrad.operation_base import BinaryUfunc, Operation, UnaryUfunc

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.mygrad._operations import KINDS, MyGradCase, gradients_of

OBJECTS = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2))


@keeps("MYGRAD-OP-01")
def test_every_input_becomes_a_tensor(subject, data):
    """The operation gets a tensor for every input: tensors as they are, other inputs as constants."""
    case = MyGradCase(subject, data)
    given, inputs, sound = [], case.inputs, case.operation()

    class Watching(sound):
        def __call__(self, *variables):
            given.extend(variables)
            return super().__call__(*variables)

    y = mg.execute_op(Watching, *inputs)
    subject.assert_equal("types of the inputs", got=[type(x) for x in given], expected=[mg.Tensor] * len(inputs))
    constants = [kind != "variable" for kind in case.drawn.kinds]
    subject.assert_equal("whether the inputs are constants", got=[x.constant for x in given], expected=constants)
    subject.assert_all_same("inputs", got=given, expected=case.drawn.values)
    same = [a is b for a, b in zip(given, inputs, strict=True)]
    expected = [isinstance(x, mg.Tensor) for x in inputs]
    subject.assert_equal("inputs that are the very objects", got=same, expected=expected)
    subject.assert_same("output", got=y, expected=case.drawn.output)


@keeps("MYGRAD-OP-02")
def test_constants_make_constants(subject, data):
    """The output is a constant if and only if all inputs are, and so are later results."""
    case = MyGradCase(subject, data)
    variable = subject.draw(data, st.booleans(), "one input is not constant")
    case.inputs = [x if variable else mg.asarray(x) for x in case.inputs]
    y = case.call()
    subject.assert_equal("whether the output is a constant", got=y.constant, expected=not variable)
    z = y * 1
    subject.assert_equal("whether what is made of it is a constant", got=z.constant, expected=not variable)
    z.backward(case.g)
    case.assert_gradients(None if variable else [None] * len(case.inputs))


@keeps("MYGRAD-OP-03")
def test_a_constant_output_passes_nothing_on(subject, data):
    """With constant=True backward_var does not run, and the inputs get no gradient."""
    case = MyGradCase(subject, data)
    constant = subject.draw(data, (True, False, None), "constant=")
    y = case.call(constant=constant)
    subject.assert_equal("whether the output is a constant", got=y.constant, expected=constant is True)
    y.backward(case.g)
    case.assert_gradients([None] * len(case.inputs) if constant else None)
    subject.assert_equal("whether backward_var ran", got=bool(case.log), expected=constant is not True)


@keeps("MYGRAD-OP-04")
def test_other_arguments_are_passed_as_they_are(subject, data):
    """op_args and op_kwargs reach the operation after its inputs, as the same objects."""
    case = MyGradCase(subject, data)
    args = subject.draw(data, st.lists(OBJECTS, max_size=3), "op_args")
    names = st.sampled_from(("axis", "scale", "mode"))
    kwargs = subject.draw(data, st.dictionaries(names, OBJECTS, max_size=2), "op_kwargs")
    given, inputs, sound = [], case.inputs, case.operation()

    class Taking(sound):
        def __call__(self, *everything, **options):
            given.extend((everything[len(inputs) :], options))
            return super().__call__(*everything[: len(inputs)])

    y = mg.execute_op(Taking, *inputs, op_args=args, op_kwargs=kwargs)
    subject.assert_equal("arguments after the inputs, and keywords", got=given, expected=[tuple(args), kwargs])
    subject.assert_equal("the objects are the same", got=all(map(operator.is_, given[0], args)), expected=True)
    y.backward(case.g)
    case.assert_gradients()


@keeps("MYGRAD-OP-12")
def test_a_creator_holds_its_inputs(subject, data):
    """Each output has a creator of its own, whose variables are the input tensors themselves."""
    case = MyGradCase(subject, data)
    calls = subject.draw(data, st.integers(1, 3), "calls on the same inputs")
    inputs, cls = case.inputs, case.operation()
    outputs = [mg.execute_op(cls, *inputs) for _ in range(calls)]
    creators = [y.creator for y in outputs]
    subject.assert_equal("types of the creators", got=[type(f) for f in creators], expected=[cls] * calls)
    subject.assert_equal("number of different creators", got=len({id(f) for f in creators}), expected=calls)
    tensors = [i for i, x in enumerate(inputs) if isinstance(x, mg.Tensor)]
    same = [f.variables[i] is inputs[i] for f in creators for i in tensors]
    subject.assert_equal("variables that are the very inputs", got=same, expected=[True] * len(same))
    made = [inputs[i].creator for i in tensors]
    subject.assert_equal("creators of the inputs", got=made, expected=[None] * len(tensors))


class _Squared(UnaryUfunc):
    numpy_ufunc = np.square

    def backward_var(self, grad, index, **kwargs):
        return grad * 2 * self.variables[0].data


class _Product(BinaryUfunc):
    numpy_ufunc = np.multiply

    def backward_var(self, grad, index, **kwargs):
        return grad * self.variables[1 - index].data


@keeps("MYGRAD-OP-13")
def test_nothing_is_computed_where_the_mask_is_false(subject, data):
    """Where the mask is False, out keeps its values and the inputs get zero gradients."""
    cls, count = subject.draw(data, ((_Squared, 1), (_Product, 2)), "operation and number of inputs")
    entries = st.lists(st.tuples(*[st.integers(-3, 3)] * 4, st.booleans()), min_size=1, max_size=4)
    drawn = subject.draw(data, entries, "inputs, out, gradient, mask")
    *values, old, g, mask = map(np.array, zip(*drawn, strict=True))
    inputs = [mg.tensor(v, dtype=float) for v in values[:count]]
    options = {} if mask.all() and subject.draw(data, st.booleans(), "mask left out") else {"where": mask}
    y = mg.execute_op(cls, *inputs, op_kwargs=options, out=old.astype(float))
    product = values[0] * values[count - 1]
    subject.assert_same("output", got=y, expected=np.where(mask, product, old).astype(float))
    y.backward(g)
    slopes = [2 * values[0]] if count == 1 else [values[1], values[0]]
    expected = [np.where(mask, g * slope, 0.0) for slope in slopes]
    subject.assert_all_same("gradients", got=gradients_of(inputs), expected=expected)


class _Tripled(Operation):
    def __call__(self, x, out=None):
        self.variables = (x,)
        return np.multiply(x.data, 3.0, out=out)

    def backward_var(self, grad, index, **kwargs):
        return 3.0 * grad


@keeps("MYGRAD-OP-14")
def test_out_becomes_the_result(subject, data):
    """The out tensor becomes the result; results computed from its former values keep their history."""
    entries = st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=1, max_size=4)
    values, old, g = np.transpose(subject.draw(data, entries, "input, out, gradient")).astype(float)
    factor = subject.draw(data, (1, 2), "out is 1: a tensor, 2: a result")
    x, before = mg.tensor(values), mg.tensor(old)
    target = before if factor == 1 else before * factor
    used = target * 1
    y = mg.execute_op(_Tripled, x, out=target)
    subject.assert_equal("whether the result is out", got=y is target, expected=True)
    subject.assert_same("out", got=target, expected=3 * values)
    subject.assert_same("what was made of out before", got=used, expected=factor * old)
    (target * 2 + used).backward(g)
    subject.assert_same("gradient of the input", got=x.grad, expected=6 * g)
    subject.assert_same("gradient of out", got=target.grad, expected=2 * g)
    if factor == 2:
        subject.assert_same("gradient of what made out before", got=before.grad, expected=2 * g)


@keeps("MYGRAD-OP-01", variant="numbers")
def test_an_operation_works_for_array_likes_alone(subject, data):
    """An operation on lists and numbers only gives a tensor with the right values."""
    case = MyGradCase(subject, data, kinds=KINDS[2:])
    inputs = [x.tolist() if isinstance(x, np.ndarray) else mg.asarray(x).tolist() for x in case.inputs]
    y = case.call(inputs)
    subject.assert_equal("type of the output", got=type(y), expected=mg.Tensor)
    subject.assert_same("output", got=y, expected=case.drawn.output)
