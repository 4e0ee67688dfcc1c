# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""docs/depend.md: examples/optional.py with boxloss and without, and what the import changes."""

import re
import sys
import warnings
from pathlib import Path

import boxloss.torch
import torch
from cmake_project import output_of

from examples.optional import iou_loss_on, own_iou_loss

ROOT = Path(__file__).parents[2]


def test_with_boxloss(device: torch.device) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        iou_loss = iou_loss_on(device)
    assert iou_loss is boxloss.torch.iou_loss
    low, side = torch.rand(2, 2, 9, 2, dtype=torch.float64, device=device)
    boxes = torch.cat((low, low + side), -1)
    torch.testing.assert_close(iou_loss(*boxes), own_iou_loss(*boxes))


# In one process, since it takes seconds to import torch. The device is one that is written in
# Python, which torch has for such tests.
WITHOUT = """
import sys, warnings, torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

sys.path.append(sys.argv[1])
from examples.optional import iou_loss_on, own_iou_loss

def ask(name):
    iou_loss_on.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert iou_loss_on(torch.device(name)) is own_iou_loss
    (warning,) = caught
    print(str(warning.message).splitlines()[0])

sys.modules["boxloss"] = None
ask("cpu")
del sys.modules["boxloss"]
version, torch.__version__ = torch.__version__, "99.1.0"
ask("cpu")
torch.__version__ = version
_setup_privateuseone_for_python_backend("unknown")
torch.library.impl("aten::empty.memory_format", "PrivateUse1")(
    lambda size, **_: torch._C._acc.create_empty_tensor(size, torch.float32)
)
torch.library.impl("aten::zero_", "PrivateUse1")(lambda zeros: zeros)
ask("unknown")
"""


def test_without_boxloss() -> None:
    none, other_torch, device = output_of(sys.executable, "-c", WITHOUT, ROOT).splitlines()
    assert none.startswith("without boxloss on cpu: No module named 'boxloss")
    assert f"on cpu: boxloss {boxloss.__version__} has no operators for torch 99.1: " in other_torch
    assert "on unknown: box_loss: no implementation computes on unknown:0; this" in device


def test_the_page_shows_it() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/depend.md").read_text(), re.DOTALL)
    assert block in (ROOT / "examples/optional.py").read_text()


CHANGES = """
import os, random, signal, sys, warnings, torch
from torch.utils import _pytree

def state():
    modules = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names
    operators = {name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names()}
    results = {name.partition(".")[0] for name in _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE}
    options = {str(each) for each in torch.compiler.config.get_config_copy().items()}
    python = [sys.path, sys.meta_path, warnings.filters, signal.getsignal(2), dict(os.environ)]
    modes = [torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()]
    modes += [torch.are_deterministic_algorithms_enabled(), torch.cuda.is_initialized()]
    seeds = random.getstate(), torch.get_rng_state().tolist()
    others = python, modes, seeds, os.listdir("/proc/self/task")
    return modules, operators, results, options, *({str(each)} for each in others)

before = state()
import boxloss.torch.compat
for old, new in zip(before, state()):
    print(*sorted(new - old))
"""


def test_what_the_import_changes() -> None:
    tag = f"('cache_key_tag', ' boxloss {boxloss.__version__}')"
    changed = output_of(sys.executable, "-c", CHANGES).splitlines()
    assert changed == ["boxloss", "boxloss", "boxloss", tag, "", "", "", ""]
