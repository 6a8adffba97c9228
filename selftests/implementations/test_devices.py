"""Devices: which there are, and what one takes is found out by trying. test_accelerator.py has runs on one."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from autograd_conformance import implementations
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.harness.probing import devices
from autograd_conformance.harness.probing.devices import Facts
from autograd_conformance.harness.processes import child
from autograd_conformance.harness.running.results import result_line
from autograd_conformance.harness.testing import drawing
from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.implementations import torch as implementation
from autograd_conformance.implementations.deviations.devices import torchvulkan as devices_of_vulkan
from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.protocol import Unavailable
from autograd_conformance.reference.clauses import CLAUSES, CONTRACT
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.suites.dialects.torch import test_checkpoint_repetition
from autograd_conformance.suites.dialects.torch import test_devices as suite

# An adapter whose device takes no int8, dies in forward mode, leaves tanh to the CPU, and has a coarse exp.
ODD = """
import os
from types import SimpleNamespace

import numpy as np

from autograd_conformance.harness.testing.clauses import ClauseSubject
from autograd_conformance.implementations.deviations.devices import torchvulkan as devices_of_vulkan
from autograd_conformance.reference.clauses import CONTRACT
from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.reference.model_tensors import Tensor

used = []


def exp(x):
    values = np.exp(x.data)
    return Tensor(values.astype("float32").astype(values.dtype) if values.dtype == "float64" else values)


def tanh(x):
    used.append("tanh")
    return ModelImplementation.xp.tanh(x)


class Odd(ModelImplementation):
    name = "odd"
    xp = SimpleNamespace(**{**vars(ModelImplementation.xp), "exp": exp, "tanh": tanh})

    def devices(self):
        return "cpu", "odd"

    def array(self, values, dtype, device):
        if dtype == "int8":
            raise TypeError("there is no int8")
        self.last = device
        return super().array(values, dtype, device)

    def jvp(self, f, primals, tangents):
        os._exit(3)

    def redispatched(self, action):
        used.clear()
        action()
        return frozenset(used if self.last == "odd" else [])
"""


@pytest.fixture
def odd(tmp_path):
    path = tmp_path / "odd.py"
    path.write_text(textwrap.dedent(ODD))
    return str(path)


def test_what_a_device_takes_is_found_out(odd):
    found = devices.find_out(odd, "odd")
    assert dict(found.dtypes) == {"int8": "TypeError: there is no int8"}
    assert found.capabilities.keys() == {"jvp"}
    assert "exit status 3" in found.capabilities["jvp"]
    assert found.accurate_as == {"float64": "float32", "complex128": "float32"}
    assert found.coarse["float64"].startswith("exp(x) is ")
    assert list(found.elsewhere) == ["tanh"]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("wrong", [lambda y: y * 2, lambda y: y * float("nan"), lambda y: y * float("inf")])
def test_a_wrong_result_is_as_accurate_as_no_dtype(monkeypatch, dtype, wrong):
    i = implementations.load("torch")
    assert devices.coarseness(i, "cpu", dtype) is None
    monkeypatch.setattr(i.xp, "exp", lambda x: wrong(x.exp()))
    as_accurate, shown = devices.coarseness(i, "cpu", dtype)
    assert as_accurate == ""
    assert shown.startswith("exp(x) is ")
    assert devices._facts([{"kind": "accuracy", "name": dtype, "found": [as_accurate, shown]}]) == Facts(elsewhere=[])


def test_a_right_device_lacks_nothing():
    found = devices.find_out("model", "cpu")
    assert asdict(found) == {**asdict(Facts()), "elsewhere": []}
    assert list(found.sentences()) == []


# torch, whose autocast on a device of that name takes these dtypes; in others it says so and is off.
CASTING = """
import torch
from autograd_conformance.implementations.torch import TorchImplementation


class Casting(TorchImplementation):
    def autocast(self, device, dtype):
        return torch.autocast(device, dtype=getattr(torch, dtype), enabled=dtype in {taken})
"""


_OFF = "under autocast in bfloat16, a product of matrices is float32"


@pytest.mark.parametrize(
    ("taken", "usual", "lacking"),
    [
        (("float16",), ("float16",), ["autocast without bfloat16"]),
        (("bfloat16",), ("bfloat16",), ["autocast without float16"]),
        (("bfloat16", "float16"), ("bfloat16", "float16"), []),
        (
            (),
            ("bfloat16", "float16"),
            ["without autocast: TypeError: under autocast in bfloat16, a product of matrices is float32"],
        ),
    ],
)
def test_a_device_is_asked_in_the_dtypes_of_its_autocast(tmp_path, taken, usual, lacking):
    path = tmp_path / "casting.py"
    path.write_text(CASTING.format(taken=taken))
    found = devices.find_out(str(path), "cpu")
    assert [each for each in found.sentences() if "autocast" in each] == lacking
    assert found.adapter(implementations.load("torch")).autocast_dtypes == usual
    assert ("autocast" in found.capabilities) is not bool(taken)


def test_a_device_that_cannot_be_tried_is_said():
    with pytest.raises(UsageProblem, match=r"what cpu takes cannot be found out: .*exit status 1.*there is no file"):
        devices.find_out("nothing.py", "cpu")


def test_a_hanging_trial_is_ended_and_the_others_go_on(odd, monkeypatch):
    monkeypatch.setattr(devices, "SECONDS", 5)
    with open(odd) as file:
        text = file.read()
    with open(odd, "w") as file:
        file.write(text.replace("os._exit(3)", "__import__('time').sleep(600)"))
    found = devices.find_out(odd, "odd")
    assert dict(found.capabilities) == {"jvp": "it did not end within 5 s"}
    assert found.coarse


class Few:
    """Processes that try three trials, of which the second ends one in some way."""

    def __init__(self, *says):
        self.says, self.asked = list(says), []

    def __call__(self, words, **_):
        self.asked.append(int(words[-1]))
        said, late = self.says.pop(0)
        marks = {">": "begins", "<": "ends", ".": "done"}
        numbers = iter(range(self.asked[-1], 9))
        messages, name = [], ""
        for mark in said:
            name = str(next(numbers)) if mark == ">" else name
            messages.append({marks[mark]: mark == "." or {"kind": "dtypes", "name": name}})
        return messages, child.Ended("ended", late)


@pytest.mark.parametrize(
    ("says", "asked", "lacking"),
    [
        ([("><><><.", False)], [0], []),
        ([("><><>", False), (".", False)], [0, 3], ["2"]),
        ([("><", False), ("><><.", False)], [0, 1], []),
        ([("><>", True), ("><><.", False)], [0, 1], []),
        ([("><>", True), (">", True), ("><.", False)], [0, 1, 2], ["1"]),
    ],
    ids=["all end", "the last one dies", "it dies between two", "a slow one goes on", "a hanging one"],
)
def test_a_trial_is_blamed_for_its_own_end(monkeypatch, says, asked, lacking):
    few = Few(*says)
    monkeypatch.setattr(child, "command", few)
    assert list(devices.find_out(str(says), "odd").dtypes) == lacking
    assert few.asked == asked


def test_facts_in_words():
    facts = Facts({"float64": "no"}, {"sparse": "no"}, {"float32": "bfloat16"}, {"float32": "x / y is 1.0"}, ["sort"])
    assert list(facts.sentences()) == [
        "without float64: no",
        "without sparse: no",
        "float32 is only as accurate as bfloat16: x / y is 1.0",
        "1 operation runs on the CPU: sort",
    ]
    assert Facts(**asdict(facts)) == facts


def test_the_adapter_has_the_dtypes_of_the_device():
    i = ModelImplementation()
    mine = Facts(dtypes={"float64": "no"}).adapter(i)
    assert "float64" in i.dtypes
    assert "float64" not in mine.dtypes
    assert Facts().adapter(i) is i


def test_a_clause_asks_for_nothing_that_the_device_does_not_take():
    i = implementations.load("torch")
    clause = CLAUSES["DEV-07"]
    dtypes = [
        ClauseSubject(Facts(dtypes=dict.fromkeys(lacking, "no")).adapter(i), clause, "cpu").tensor([1.0]).dtype
        for lacking in ((), ("float64", "complex128"), ("float64", "float32"))
    ]
    assert dtypes == [torch.float64, torch.float32, torch.float16]


def asking(lacking, *dtypes):
    """The result of a test that draws one of these dtypes, on a device that lacks some."""

    @keeps("DEV-07")
    def test(subject, data):
        asked = subject.draw(data, dtypes, "dtype")
        subject.assert_accepted(lambda: subject.tensor([1.0], asked), "a tensor")

    without = Facts(dtypes=dict.fromkeys(lacking, "no")).adapter(implementations.load("torch"))
    subject, raised = ClauseSubject(without, CLAUSES["DEV-07"], "cpu"), None
    drawing.prepare(test, subject.key["id"], 0, shrink=False)
    try:
        test(subject)
    except Exception as error:  # noqa: BLE001 - as the plugin does
        raised = error
    return result_line(subject, raised)


def test_a_test_that_needs_what_the_device_does_not_take_is_skipped():
    skipped = asking(["float64"], "float64")
    assert (skipped["outcome"], skipped["reason"]) == ("skip", "cpu takes no float64")
    assert asking(["float64"], "float64", "float32")["outcome"] == "pass"
    assert asking([], "float64")["outcome"] == "pass"


def test_an_accelerator_beside_that_of_torch_has_no_streams_of_its(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("mps"))
    with pytest.raises(pytest.skip.Exception, match=r"torch\.accelerator is mps, and not cuda"):
        suite._streams(ClauseSubject(implementations.load("torch"), CLAUSES["DEV-02"], "cuda"))


def test_a_function_is_as_accurate_as_the_device():
    facts, function = Facts(accurate_as={"float64": "float32"}), FUNCTIONS["Exp"]
    assert facts.function(function).accuracy("float64") == "float32"
    assert facts.function(function).accuracy("float16") == "float16"
    assert facts.function(function) is facts.function(function)
    assert Facts().function(function) is function


class Copies(TorchDispatchMode):
    """Notes the dtypes of the tensors that are copied between devices, before and after."""

    def __init__(self):
        super().__init__()
        self.dtypes = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        if operation is torch.ops.aten._to_copy.default and args[0].device != result.device:
            self.dtypes.append((args[0].dtype, result.dtype))
        return result


def test_the_cpu_converts_what_is_read():
    i = implementations.load("torch")
    i.start_device("lazy")
    x = i.array([1.5], "float32", "lazy")
    with Copies() as copies:
        assert i.numpy(x) == [1.5]
    assert copies.dtypes == [(torch.float32, torch.float32)]


class Device(ModuleType):
    """A module that a package registers for its device, without the functions that are not asked for."""

    def device_count(self):
        return 1


@pytest.mark.parametrize(("kind", "there"), [("cpu", True), ("nowhere", False)])
def test_a_device_whose_module_says_nothing_is_there_if_a_tensor_is(monkeypatch, kind, there):
    monkeypatch.setattr(torch, kind, Device(kind), raising=False)
    assert implementation.devices.is_available(kind) is there


def test_the_random_state_of_a_device_that_has_none_is_not_asked_for(monkeypatch):
    monkeypatch.setattr(torch, "nowhere", Device("nowhere"), raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"torch\.nowhere has no get_rng_state"):
        test_checkpoint_repetition._state(SimpleNamespace(device="nowhere"))


def test_a_device_without_a_number_is_the_first():
    assert suite._place(torch.device("vulkan")) == suite._place(torch.device("vulkan:0")) == ("vulkan", 0)


class Two(ModelImplementation):
    def devices(self):
        return "cpu", "vulkan"


@pytest.mark.parametrize(
    ("given", "found"), [(None, ()), ("vulkan", ("vulkan",)), ("vulkan, cpu", ("vulkan", "cpu")), ("cpu,cpu", ("cpu",))]
)
def test_devices_are_chosen_by_name(given, found):
    assert devices.chosen(given, Two()) == found


@pytest.mark.parametrize("given", ["vulcan", "cpu,vulcan", "cpu,,"])
def test_a_device_that_is_not_there_is_one_sentence(given):
    with pytest.raises(UsageProblem, match=r"has no device '.*' on this machine; choose from: cpu, vulkan.*--import"):
        devices.chosen(given, Two())


def test_the_only_devices_of_a_check_come_first(monkeypatch):
    monkeypatch.setenv(implementations.DEVICES, "cpu")
    assert implementations.load("torch").devices() == ("cpu",)
    monkeypatch.setenv(implementations.DEVICES, "gpu9")
    with pytest.raises(Unavailable, match="torch has no device 'gpu9' on this machine; choose from: cpu"):
        implementations.load("torch")


def test_what_the_only_device_takes_is_found_out(odd, monkeypatch):
    monkeypatch.setenv(implementations.DEVICES, "odd, odd")
    only = implementations.load(odd)
    assert only.devices() == only.accelerators() == ("odd",)
    found = devices.facts(SimpleNamespace(implementation=odd), only, (), None)
    assert found["odd"].accurate_as["float64"] == "float32"
    assert list(found["odd"].elsewhere) == ["tanh"]
    monkeypatch.setenv(implementations.DEVICES, "cpu")
    assert implementations.load(odd).accelerators() == ()


def test_a_package_that_is_imported_is_part_of_the_implementation(monkeypatch):
    monkeypatch.setenv(implementations.IMPORTS, "rich, click")
    found = implementations.load("model")
    assert [part.__name__ for part in found.parts] == ["rich", "click"]
    assert found.added.keys() == {"rich", "click"}
    assert all(found.added.values())


def test_what_a_device_is_known_not_to_keep_is_nothing_of_the_cpu(monkeypatch):
    monkeypatch.setattr(implementations, "of_device", lambda _: devices_of_vulkan.DEVIATIONS)
    monkeypatch.setenv(implementations.IMPORTS, "rich")
    i = implementations.load("torch")
    monkeypatch.setattr(i, "accelerators", lambda: ("vulkan",))
    clause = CONTRACT["CHECK-07"]
    found = {device: ClauseSubject(i, clause, device).deviations for device in ("cpu", "vulkan")}
    assert len(found["vulkan"]) == len(found["cpu"]) + 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ("run", "model", "--import", "a-b"),
            "--import must be the name of a package, as in --import torchvulkan",
        ),
        (
            ("run", "model", "--import", "a:b-c"),
            "--import calls a function of a package, as in --import mypackage:register, got 'b-c' as its name",
        ),
        (("run", "model", "--import", "a:"), "got '' as its name"),
        (("run", "model", "--import", "a:b:c"), "got 'b:c' as its name"),
        (
            ("run", "torch", "--package", "1x"),
            "--package must be the name of a package, as in --package mindtorch",
        ),
        (("run", "model", "--devices", "gpu9"), "model has no device 'gpu9' on this machine; choose from: cpu"),
        (("check", "mine.py:F", "--import", "nowhere"), "nowhere of --import cannot be imported"),
        (("check", "mine.py:F", "--device", "gpu9"), "torch has no device 'gpu9' on this machine; choose from: cpu"),
    ],
)
def test_a_mistake_is_one_sentence(said, monkeypatch, words, expected):
    for variable in (implementations.IMPORTS, implementations.PACKAGE, implementations.DEVICES):
        # What an option sets is undone.
        monkeypatch.setenv(variable, "")
    status, output = said(*words)
    assert status == 2
    assert expected in output
