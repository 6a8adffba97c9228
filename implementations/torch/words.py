"""The lines of a reproduction script on torch that many properties share: a call, its gradients, and a comparison."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Sequence

from autograd_conformance.implementations.scripting import Named, NoScript, Shown

FLOATING = ("float64", "float32", "float16", "bfloat16", "complex128", "complex64")

# What scripts call numbers that they compute before they compare.
NUMBERS = ("slope", "total")

# Another tensor with the same values, without strides, offset or lazy bits.
CONTIGUOUS = "clone(memory_format=torch.contiguous_format)"

# Where gradients come from `.backward()` alone.
GRAD_BY_BACKWARD = """\
def grad(outputs, inputs, cotangents, **_):
    torch.autograd.backward(outputs, cotangents)
    found = [x.grad for x in inputs]
    for x in inputs:
        x.grad = None
    return found
"""


def several(names: Iterable[str]) -> str:
    """One name as it is, several as a tuple."""
    found = list(names)
    return found[0] if len(found) == 1 else f"({', '.join(found)})"


def assigned(names: Sequence[str]) -> str:
    """The names on the left of an assignment of a tuple."""
    return ", ".join(names) if len(names) > 1 else f"({names[0]},)"


def listed(names: Iterable[str]) -> str:
    """The names as a tuple, whatever their number."""
    found = list(names)
    return f"({found[0]},)" if len(found) == 1 else f"({', '.join(found)})"


class Words:
    """A failing call in torch's words."""

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.names = [tensor.name for tensor in shown.tensors]
        self.tracked = [self.names[n] for n in shown.tracked]
        self.cotangents = [shown.cotangents[n] for n in shown.used]

    @property
    def what(self) -> str:
        """What is wrong, in the words of the finding."""
        return str(self.shown.finding.get("what", ""))

    def call(self, names: Sequence[str] | None = None, apply: str = "") -> str:
        """The expression of the call, of these tensors."""
        shown, given = self.shown, list(names or self.names)
        form = ", ".join(shown.arguments)
        for number in (shown.slots.index(slot) for slot in shown.inplace if slot in shown.slots):
            form = form.replace(f"{{{number}}}", f"{{{number}}}.clone()")
        arguments = form.format(*(_closed(x) if f"{{{n}}}." in form else x for n, x in enumerate(given)))
        call = f"{apply or shown.apply}({arguments})"
        return f"(t for t in {call} if isinstance(t, torch.Tensor))" if shown.unpacking == "mixed" else call

    @property
    def sparse(self) -> list[str]:
        """The names of the tensors of which the script makes a sparse one, without their zeros."""
        rows = enumerate(zip(self.names, self.shown.slots, strict=True))
        return [name for n, (name, slot) in rows if self.shown.arguments[slot] != f"{{{n}}}"]

    def forward(self, names: Sequence[str] | None = None, apply: str = "") -> str:
        """The line that makes the outputs."""
        return f"{self.target} = {self.call(names, apply)}\n"

    @property
    def target(self) -> str:
        """What the call is assigned to."""
        return self.shown.outputs[0] if self.shown.unpacking == "single" else assigned(self.shown.outputs)

    @property
    def ends(self) -> list[str]:
        """The outputs that have a cotangent."""
        return [self.shown.outputs[n] for n in self.shown.used]

    def grad(
        self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None,
        cotangents: Sequence[str] | None = None, *options: str,
    ) -> str:  # fmt: skip
        """The expression of the gradients: a tuple."""
        inputs = self.tracked if inputs is None else inputs
        outputs = self.ends if outputs is None else outputs
        cotangents = [g.name for g in self.cotangents if g] if cotangents is None else cotangents
        if not inputs or not outputs:
            raise NoScript("nothing requires grad in this call, or no output has a cotangent")
        if self.shown.own:
            options = (*options, "materialize_grads=True")
        elif len(inputs) > 1 or self.shown.aspect == "presence":
            options = (*options, "allow_unused=True")
        form = listed if self.shown.backward_only else several
        return f"{self.grad_function}({', '.join([form(outputs), form(inputs), form(cotangents), *options])})"

    @property
    def grad_function(self) -> str:
        """The function that gives gradients."""
        return "grad" if self.shown.backward_only else "torch.autograd.grad"

    @property
    def differentiable(self) -> list[str]:
        """The tensors that may require grad."""
        return [t.name for t in self.shown.tensors if t.dtype in FLOATING]

    def helpers(self) -> str:
        """The function by which gradients are taken, where it is not a function of torch."""
        return GRAD_BY_BACKWARD + "\n\n" if self.shown.backward_only else ""

    @property
    def position(self) -> int:
        """The place of the wrong gradient among those of the tensors that require grad."""
        if self.shown.aspect == "raised":
            return 0
        if self.shown.number not in self.shown.tracked:
            raise NoScript("the gradient is one of a tensor that does not require grad")
        return self.shown.tracked.index(self.shown.number)

    def results(self) -> tuple[str, str]:
        """The lines that make the wrong tensor, and its name."""
        if self.shown.kind == "output":
            return self.forward(), self.shown.outputs[self.shown.number]
        names = [f"grad_{name}" for name in self.tracked]
        gradients = f"{assigned(names)} = {self.grad()}\n" if names else self.grad()
        return self.helpers() + self.forward() + gradients, names[self.position]

    def full(self) -> list[str]:
        """Contiguous cotangents of all differentiable outputs, zeros for those that are not used."""
        rows = zip(self.shown.outputs, self.shown.cotangents, self.shown.differentiable, strict=True)
        return [_dense(g) if g else f"torch.zeros_like({y})" for y, g, differentiable in rows if differentiable]

    @property
    def partial(self) -> bool:
        """Whether the call asks for less than all gradients, or in another layout."""
        laid = any(g is not None and g.layout != "contiguous" for g in self.cotangents)
        return laid or len(self.full()) > len(self.ends) or len(self.differentiable) > len(self.tracked)

    def run(
        self, parameters: Sequence[str] | None = None, name: str = "run", apply: str = "", full: bool = False
    ) -> str:
        """A function of the script that gives the wrong tensor; ``full`` gives a cotangent to every output."""
        kept = [y for y, d in zip(self.shown.outputs, self.shown.differentiable, strict=True) if d]
        if self.shown.kind == "output":
            end = f"return {self.shown.outputs[self.shown.number]}"
        elif full:
            place = self.differentiable.index(self.names[self.shown.number])
            end = f"return {self.grad(self.differentiable, kept, self.full())}[{place}]"
        else:
            end = f"return {self.grad()}[{self.position}]"
        lines = textwrap.indent(self.forward(apply=apply), "    ") + f"    {end}\n"
        helpers = self.helpers() if self.shown.kind == "gradient" and name == "run" else ""
        return f"{helpers}def {name}({', '.join(parameters or self.names)}):\n{lines}\n\n"

    def renewed(self, expression: str) -> str:
        """The tensors, each changed so and a leaf again: arguments of `run`."""
        return f"*({expression}.requires_grad_(t.requires_grad) for t in {listed(self.names)})"

    # What is compared.

    @property
    def number_of(self) -> str:
        """What follows the name of a tensor to give the wrong element as a number."""
        index = self.shown.component.get("index") or []
        return (f"[{', '.join(map(str, index))}]" if index else "") + ".item()"

    def compare(self, got: str, expected: str = "") -> str:
        """The end of the script: an expression against another one, or against what the finding says.

        Without ``expected`` the number is that of the finding; those of `NUMBERS` are not tensors.
        """
        aspect = self.shown.aspect
        if aspect == "raised":
            return "".join(f"{each}\n" for each in (got, expected) if each and not each.isidentifier())
        if aspect not in _ENDS:
            raise NoScript("the finding is about no single number, shape or tensor")
        return _ENDS[aspect](self, got, expected)

    def same(self, got: str, expected: str) -> str:
        """The end of the script: a value that should equal another one."""
        if self.shown.aspect == "raised":
            return f"{got}\n"
        return f"got = {got}\nexpected = {expected}\n{self.said()}sys.exit(got != expected)\n"

    def said(self, bound: str = "") -> str:
        """The line that prints what was found."""
        what = self.what.replace("{", "{{").replace("}", "}}").replace('"', "'")
        return f'print(f"{what}: got {{got}}, expected {{expected}}{bound}")\n'

    def bound(self) -> str:
        """The suite's bound of the wrong element."""
        bound = self.shown.component.get("bound")
        if bound is None:
            raise NoScript("the finding has no bound")
        return repr(float(bound))


def _closed(expression: str) -> str:
    """The expression, in parentheses if a method could not follow it otherwise."""
    follows = isinstance(ast.parse(expression, mode="eval").body, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return expression if follows else f"({expression})"


def _dense(cotangent: Named) -> str:
    return cotangent.name + (f".{CONTIGUOUS}" if cotangent.layout != "contiguous" else "")


def exact(text: str) -> str:
    """A printed number as an expression; raises ValueError for anything else."""
    value = complex(text)
    parts = [
        "torch.nan" if part != part else f"{'-' * (part < 0)}torch.inf" if abs(part) == float("inf") else repr(part)
        for part in (value.real, value.imag)
    ]
    return f"complex({parts[0]}, {parts[1]})" if "j" in text else parts[0]


def _value(words: Words, got: str, expected: str) -> str:
    finding = words.shown.finding
    if words.shown.component.get("bound") is None and str(finding["got"]) == "nan":
        # A NaN has no bound: it is wrong in any case.
        return _finite(words, got, "")
    if expected in NUMBERS:
        compared = f"expected, bound = {expected}, {words.bound()}"
    elif expected:
        compared = f"expected = {expected}{words.number_of}\nbound = {words.bound()}"
    else:
        compared = f"expected, bound = {exact(str(finding['expected']))}, {words.bound()}"
    fine, said = ["abs(got - expected) <= bound"], str(finding["expected"]) + str(finding["got"])
    fine += ["got == expected"] * ("inf" in said) + ["got != got and expected != expected"] * ("nan" in said)
    end = f"{words.said(', bound {bound}')}sys.exit(not ({' or '.join(fine)}))\n"
    return f"got = {got}{words.number_of}\n{compared}\n{end}"


def _presence(words: Words, got: str, _: str) -> str:
    wanted = str(words.shown.finding["expected"]) != "None"
    expected = "a tensor" if wanted else "None"
    return f'got, expected = {got}, "{expected}"\n{words.said()}sys.exit(got is {"" if wanted else "not "}None)\n'


def _shape(words: Words, got: str, _: str) -> str:
    return words.same(f"tuple({got}.shape)", str(words.shown.finding["expected"]))


def _zero(words: Words, got: str, _: str) -> str:
    end = "sys.exit(got is not None and not (got == 0).all())"
    return f'got, expected = {got}, "zero everywhere"\n{words.said()}{end}\n'


def _finite(words: Words, got: str, _: str) -> str:
    number = f"{got}{words.number_of}"
    return f'got, expected = {number}, "a finite number"\n{words.said()}sys.exit(not abs(got) < torch.inf)\n'


def _bits(words: Words, got: str, expected: str) -> str:
    return f"got, expected = {got}, {expected}\n{words.said()}sys.exit(not torch.equal(got, expected))\n"


_ENDS = {"value": _value, "presence": _presence, "shape": _shape, "zero": _zero, "finite": _finite, "bits": _bits}


_SQUARED = """\
class Squared(torch.autograd.Function):
    @staticmethod
    def forward({forward}):
        {save}return x * x
{setup}
    @staticmethod
    def backward(ctx, cotangent):
        (x,) = ctx.saved_tensors
        return 2 * cotangent * x.conj()


"""


def squared(separate: bool) -> str:
    """Another custom Function, in the style of the one under test."""
    if not separate:
        return _SQUARED.format(forward="ctx, x", save="ctx.save_for_backward(x)\n        ", setup="")
    setup = "\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n        ctx.save_for_backward(*inputs)\n"
    return _SQUARED.format(forward="x", save="", setup=setup)
