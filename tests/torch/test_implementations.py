# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Which implementations there are, and how one is chosen."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from threading import Event, Thread

import pytest
import torch
from boxloss.torch import giou_loss, implementations, use_implementation
from devices import GPU_NAMES
from problems import boxes, problem


def chosen(device: str) -> str:
    """What stands for the device now; the device's own name where nothing was chosen."""
    before: str = torch.ops.boxloss.use_implementation(device)
    torch.ops.boxloss.use_implementation(before)
    return before


def test_the_cpus_implementations_are_always_there_best_first() -> None:
    on_cpu = [name for name in implementations() if name.startswith("cpu/")]
    assert {"cpu/native", "cpu/reference"} <= set(on_cpu)
    assert on_cpu[-1] == "cpu/reference"
    assert len(set(implementations())) == len(implementations())


def test_blocks_nest() -> None:
    with use_implementation("cpu/reference"):
        with use_implementation("cpu/native"):
            assert chosen("cpu") == "cpu/native"
            with use_implementation("cpu"):
                assert chosen("cpu") == "cpu"
            assert chosen("cpu") == "cpu/native"
        assert chosen("cpu") == "cpu/reference"
        within = use_implementation("cpu/native")  # lasts as long as the block around it
        assert chosen("cpu") == "cpu/native"
    assert chosen("cpu") == "cpu"
    del within
    with use_implementation("cpu/reference"):
        block = use_implementation("cpu/native")
        for _ in range(2):
            with block:
                assert chosen("cpu") == "cpu/native"
            assert chosen("cpu") == "cpu/reference"
    with pytest.raises(KeyError), use_implementation("cpu/reference"):
        raise KeyError
    assert chosen("cpu") == "cpu"
    use_implementation("cpu/reference")  # without a block it lasts
    assert chosen("cpu") == "cpu/reference"
    use_implementation("cpu")
    assert chosen("cpu") == "cpu"


def test_one_object_is_in_one_block_at_a_time() -> None:
    block = use_implementation("cpu/reference")
    with block:
        with pytest.raises(RuntimeError, match="is in its block already"), block:
            pass
        assert chosen("cpu") == "cpu/reference"
    assert chosen("cpu") == "cpu"


class ThreadWithBlock:
    """A thread that is in a block from its making to its end, each of which it is waited for."""

    def __init__(self, name: str) -> None:
        self._is_in, self._may_go = Event(), Event()
        self._thread = Thread(target=self._run, args=(name,))
        self._thread.start()
        assert self._is_in.wait(60)

    def _run(self, name: str) -> None:
        with use_implementation(name):
            self._is_in.set()
            self._may_go.wait(60)

    def end(self) -> None:
        self._may_go.set()
        self._thread.join()


# What is chosen outside of the threads, and in each.
THREADS = [
    ("cpu", ("cpu/reference", "cpu/native", "cpu/reference")),
    ("cpu/native", ("cpu/reference", "cpu/native", "cpu/reference")),
    ("boxloss", ("aten", "boxloss", "aten")),
]


@pytest.mark.parametrize("order", [*permutations(range(3))], ids=str)
@pytest.mark.parametrize(("outside", "names"), THREADS)
def test_blocks_of_threads_end_in_any_order(
    outside: str, names: tuple[str, ...], order: tuple[int, ...]
) -> None:
    neutral = outside.partition("/")[0]
    with use_implementation(outside):
        blocks = dict(enumerate(map(ThreadWithBlock, names)))
        for ended in order:
            assert chosen(neutral) == names[max(blocks)]
            blocks.pop(ended).end()
        assert chosen(neutral) == outside
    assert chosen(neutral) == neutral


def call_twice() -> tuple[use_implementation, use_implementation]:
    """One call in another thread, then one in this."""
    with ThreadPoolExecutor() as pool:
        first = pool.submit(use_implementation, "cpu/reference").result()
        return first, use_implementation("cpu/native")


def test_blocks_that_were_called_before_others_began() -> None:
    # As threads may come between a block's call and its beginning.
    first, second = call_twice()
    second.__enter__()
    first.__enter__()
    assert chosen("cpu") == "cpu/native"
    first.__exit__(None, None, None)
    assert chosen("cpu") == "cpu/native"
    second.__exit__(None, None, None)
    assert chosen("cpu") == "cpu"

    first, second = call_twice()
    with first:
        pass
    assert chosen("cpu") == "cpu"
    with second:
        assert chosen("cpu") == "cpu/native"
    assert chosen("cpu") == "cpu"


def test_calls_of_one_thread_last_but_for_those_with_a_block() -> None:
    with use_implementation("cpu"):
        block = use_implementation("cpu/reference")
        use_implementation("cpu/native")
        with block:
            assert chosen("cpu") == "cpu/reference"
        assert chosen("cpu") == "cpu/native"
    assert chosen("cpu") == "cpu"


def test_blocks_of_two_devices_do_not_meet(gpu_name: str) -> None:
    device = gpu_name.partition("/")[0]
    on_host, on_gpu = ThreadWithBlock("cpu/reference"), ThreadWithBlock(gpu_name)
    on_host.end()
    assert [chosen("cpu"), chosen(device)] == ["cpu", gpu_name]
    on_gpu.end()
    assert chosen(device) == device


def test_the_choice_decides_what_computes_forward_and_backward() -> None:
    """The reference computes in double: its float32 results differ in some last bits."""
    pred, target = (boxes((1000,), torch.device("cpu"), seed=seed) for seed in (1, 2))
    loss = giou_loss(pred.requires_grad_(), target, reduction="none")
    (gradient,) = torch.autograd.grad(loss.sum(), pred, retain_graph=True)
    with use_implementation("cpu/reference"):  # of backward's own time
        assert not torch.equal(torch.autograd.grad(loss.sum(), pred)[0], gradient)
        assert not torch.equal(giou_loss(pred, target, reduction="none"), loss)


def test_an_unknown_name_is_an_error_that_names_the_closest() -> None:
    text = r"no implementation 'cpu/nativ'; .* Closest name: cpu/native\. 'aten' names "
    with pytest.raises(RuntimeError, match=text):
        use_implementation("cpu/nativ")
    assert chosen("cpu") == "cpu"


if torch.cuda.is_available() and not GPU_NAMES:

    def test_gpu_tensors_in_a_build_without_a_gpu_implementation() -> None:
        with pytest.raises(RuntimeError, match="'cuda' is not compiled into this boxloss"):
            giou_loss(**problem("dense", torch.device("cuda")))
