"""ctx.needs_input_grad: its flags, and that backward may ignore them."""

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._grad_and_backward import drawn_create_graph
from autograd_conformance.suites.contract._inplace_and_views import drawn_preparation


@keeps("NIG-01")
def test_one_bool_for_each_argument(subject, data):
    """needs_input_grad is a tuple with one bool for each argument, in forward and in backward."""
    polynomial = subject.polynomial(data, separate=None)
    run = subject.run(polynomial)
    run.gradients(polynomial.cotangents())
    seen = (run.seen.needs_in_forward, run.seen.needs_in_backward)
    what = "types of ctx.needs_input_grad in forward and backward, and of its entries"
    kinds = tuple((type(needs), tuple(type(need) for need in needs)) for needs in seen)
    subject.assert_equal(what, got=kinds, expected=((tuple, (bool,) * len(polynomial.arguments)),) * 2)


@keeps("NIG-02")
def test_true_for_tensors_that_require_grad_alone(subject, data):
    """The flags are True exactly for the tensors that require grad, leaves and results alike."""
    polynomial = subject.polynomial(data, separate=None)
    run = subject.run(polynomial, prepare=drawn_preparation(subject, data))
    run.gradients(polynomial.cotangents(), differentiable=drawn_create_graph(subject, data))
    subject.assert_equal("ctx.needs_input_grad in forward", got=run.seen.needs_in_forward, expected=polynomial.needs)
    subject.assert_equal("ctx.needs_input_grad in backward", got=run.seen.needs_in_backward, expected=polynomial.needs)


@keeps("NIG-02", needs="requires_grad", variant="repeated")
def test_a_tensor_passed_again_has_its_flag_again(subject, data):
    """A tensor that is passed several times has its flag at each position."""
    polynomial = subject.polynomial(data, arguments=("tracked", "fixed", "number"))
    first = {}
    run = subject.run(polynomial, prepare=lambda x: first.setdefault(subject.implementation.requires_grad(x), x))
    run.gradients(polynomial.cotangents())
    what = "ctx.needs_input_grad, where all tensors that require grad are one,"
    subject.assert_equal(f"{what} in forward", got=run.seen.needs_in_forward, expected=polynomial.needs)
    subject.assert_equal(f"{what} in backward", got=run.seen.needs_in_backward, expected=polynomial.needs)


@keeps("NIG-05")
def test_grad_mode_changes_no_flag(subject, data):
    """Under no_grad the flags are the same as with grad mode on."""
    polynomial = subject.polynomial(data, separate=None)
    run = subject.run(polynomial, under=subject.implementation.no_grad, prepare=drawn_preparation(subject, data))
    subject.assert_equal("ctx.needs_input_grad under no_grad", got=run.seen.needs_in_forward, expected=polynomial.needs)


@keeps("NIG-07")
def test_gradients_that_nobody_needs_are_ignored(subject, data):
    """Gradients that backward returns for inputs that need none are ignored."""
    polynomial = subject.polynomial(data, arguments=("tracked", "fixed"), generous=True)
    cotangents = polynomial.cotangents()
    got = subject.assert_accepted(lambda: subject.run(polynomial).gradients(cotangents), "unneeded gradients")
    subject.assert_all_same("gradients", got=got, expected=polynomial.vjp(cotangents))
