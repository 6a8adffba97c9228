"""What a custom Function takes from the process, and leaves there: memory, random numbers, settings."""

from functools import partial

from autograd_conformance.harness.outcomes import Kind
from autograd_conformance.harness.testing import settings
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.harness.testing.observe import equal
from autograd_conformance.strategies.scope import PLAIN


@holds("MEM-WRITTEN", needs="new_memory", examples=0.4)
def test_mem_written(subject, data):
    """Outputs and gradients are the same if the memory that is allocated is filled with zeros and with NaN."""
    example = subject.example(data.draw(subject.calls(PLAIN), label="call"))
    expected = subject.unless_refused(lambda: settings.results_in_new_memory(example, fill=False), otherwise=None)
    if expected is None:
        return
    got, again, after = (
        settings.results_in_new_memory(example.of(example.call), fill=fill) for fill in (True, True, False)
    )
    # What differs from call to call, or in the first call alone, says nothing about memory.
    same = partial(equal, subject.implementation, got)
    if not same(again) or (same(after) and not same(expected)):
        subject.record.leave_open("its results change from call to call")
        return
    hint = "new memory was filled with NaN (integers: the largest number), and with zeros in the run before"
    subject.assert_same(example.call, example.result_names, got=got, expected=expected, hint=hint)


@holds("ENV-RANDOM", needs="settings", examples=0.3)
def test_env_random(subject, data):
    """Outputs and gradients are the same with other seeds of the random numbers."""
    example = subject.unseeded_example(data.draw(subject.calls(PLAIN), label="call"))
    expected = settings.results_from(example, seed=1)
    got = settings.results_from(example.of(example.call), seed=2)
    hint = "the random numbers were seeded with 1, and then with 2"
    subject.assert_same(example.call, example.result_names, got=got, expected=expected, hint=hint)


@holds("ENV-SETTINGS", needs="settings", examples=0.3)
def test_env_settings(subject, data):
    """forward and backward leave the settings of the process as they were."""
    example = subject.unseeded_example(data.draw(subject.calls(PLAIN), label="call"))
    found = settings.changed_settings(example)
    subject.assert_equal(example.call, "settings that were changed", got=found, expected=[], kind=Kind.MUTATED)


@holds("ENV-SETTINGS", needs="settings", examples=0.2, variant="seeds")
def test_env_settings_seeds(subject, data):
    """forward and backward seed no random numbers that the caller draws."""
    example = subject.unseeded_example(data.draw(subject.calls(PLAIN), label="call"))
    found = settings.reseeding(example)
    hint = "their state afterwards is the same, whatever it was before"
    what = "random numbers whose state was set"
    subject.assert_equal(example.call, what, got=found, expected=[], hint=hint, kind=Kind.MUTATED)
