"""Backward passes in several threads: on which thread they run, and graphs that threads share."""

import threading
from dataclasses import replace

import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import polynomials
from autograd_conformance.suites.contract._ctx_observers import observing_ctx
from autograd_conformance.suites.dialects.torch._leaves import new_leaves, right_gradients, starts_of

# Seconds after which a thread counts as stuck.
PATIENCE = 60


def _in_threads(actions, *, at_once):
    """Run each action in its own thread, all at once or one after the other; their results or exceptions."""
    barrier = threading.Barrier(len(actions) if at_once else 1)
    results = [TimeoutError(f"no result after {PATIENCE} seconds") for _ in actions]

    def run(number):
        barrier.wait(PATIENCE)
        try:
            results[number] = actions[number]()
        except Exception as raised:  # noqa: BLE001 - the test looks at it
            results[number] = raised

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(actions))]
    for thread in threads:
        thread.start()
        if not at_once:
            thread.join(PATIENCE)
    [thread.join(PATIENCE) for thread in threads]
    return results


def _pass(subject, polynomial):
    """A function that runs a pass over one recorded call; by default it frees the graph."""
    leaves = new_leaves(subject, polynomial)
    starts, given = starts_of(subject, polynomial, subject.call_of(polynomial)(*leaves))
    inputs = [x for x in leaves if x.requires_grad]
    return lambda **options: torch.autograd.grad(starts, inputs, given, **options)


def _failed(results):
    return [result for result in results if isinstance(result, Exception)]


@keeps("THREAD-01", examples=0.6)
def test_passes_over_separate_graphs_run_on_the_threads_that_call_them(subject, data):
    """Concurrent passes run on their own threads and give right gradients."""
    host = replace(subject, device="cpu")
    several = st.lists(polynomials(dtypes=subject.dtypes, separate=None), min_size=1, max_size=4)
    drawn = subject.draw(data, several, "functions, one a thread")

    def pass_over(polynomial):
        ran = []
        run = host.run(
            polynomial, cls=observing_ctx(host, polynomial, leave=lambda ctx: ran.append(threading.get_ident()))
        )
        gradients = run.gradients(polynomial.cotangents())
        return gradients, [ident == threading.get_ident() for ident in ran]

    results = _in_threads([lambda p=p: pass_over(p) for p in drawn], at_once=True)
    subject.assert_equal("errors of passes in several threads", got=_failed(results), expected=[])
    for polynomial, (gradients, mine) in zip(drawn, results, strict=True):
        subject.assert_equal("whether backward runs on the thread that called the pass", got=mine, expected=[True])
        expected = polynomial.vjp(polynomial.cotangents())
        subject.assert_all_same("gradients", got=gradients, expected=expected)


SECOND_TIME = ("second time", "freed", "retain_graph")


@keeps("THREAD-02", examples=0.6)
def test_a_graph_that_a_thread_has_used_up_is_so_for_all(subject, data):
    """After one thread's pass freed the graph, a pass in another thread raises."""
    polynomial = subject.polynomial(data, separate=None)
    count = subject.draw(data, st.integers(2, 4), "threads, one after the other")
    backward = _pass(subject, polynomial)
    first, *others = _in_threads([backward] * count, at_once=False)
    subject.assert_equal("error of the first pass", got=_failed([first]), expected=[])
    subject.assert_all_same("gradients of the first pass", got=first, expected=right_gradients(polynomial))
    for result in others:
        what = "a further pass in another thread"
        subject.assert_raises(RuntimeError, lambda result=result: _raise(result), what, naming=[SECOND_TIME])


def _raise(result):
    if isinstance(result, Exception):
        raise result
    return result


@keeps("THREAD-02", variant="retained", examples=0.6)
def test_a_retained_graph_serves_threads_at_once(subject, data):
    """Concurrent passes over one retained graph all give right gradients."""
    polynomial = subject.polynomial(data, separate=None)
    count = subject.draw(data, st.integers(2, 4), "threads at once")
    backward = _pass(subject, polynomial)
    results = _in_threads([lambda: backward(retain_graph=True)] * count, at_once=True)
    results += _in_threads([backward], at_once=False)
    subject.assert_equal("errors of passes with retain_graph, and of one after them", got=_failed(results), expected=[])
    for result in results:
        subject.assert_all_same("gradients", got=result, expected=right_gradients(polynomial))
