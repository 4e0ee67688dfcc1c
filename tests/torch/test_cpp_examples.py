# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/cpp give the same numbers as Python; docs/cpp.md and docs/deploy.md show
them, as docs/backends.md shows examples/backend."""

import re
import sys
from pathlib import Path
from typing import Any

import boxloss
import pytest
import torch
from boxloss.torch import box_loss, generalized_box_iou_loss, implementations
from cmake_project import build, configure, output_of
from torch import nn

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "cpp"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(EXAMPLES, tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module")
def exported(cpp_compiler: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "model.pt2"
    output_of(sys.executable, EXAMPLES / "export_model.py", path)
    return path


@pytest.mark.long
def test_boxes_in_arrays(programs: Path, device: torch.device) -> None:
    """plain.cpp, and gpu.cpp, which is the same on a GPU."""
    program = programs / ("plain" if device.type == "cpu" else "gpu")
    if not program.exists():
        pytest.skip("the CUDA toolkit is not installed")
    boxes = [[12, 8, 58, 52], [80, 25, 125, 85], [10, 5, 240, 250], [0, 0, 9, 9]]
    boxes += [[33, 38, 66, 85], [1, 1, 2, 2], [50, 50, 60, 60], [70, 7, 77, 17]]
    pred = torch.tensor(boxes, dtype=torch.float32, device=device).view(2, 4, 4).requires_grad_()
    true = [[10, 10, 60, 50], [80, 20, 120, 90], [0, 0, 255, 255], [30, 40, 70, 80]]
    target = torch.tensor(true, dtype=torch.uint8, device=device)
    loss = box_loss(pred, target, "giou", offsets=torch.tensor([0, 3, 4], device=device))
    loss.backward()
    assert pred.grad is not None

    first, *rest = output_of(program).splitlines()

    best = next(name for name in implementations() if name.startswith(device.type))
    assert first == f"{best}: loss {loss.item():.9g}"
    assert rest == [
        f"image {image}, slot {slot}: gradient "
        + " ".join(f"{value:.9g}" for value in pred.grad[image, slot].tolist())
        for image in range(2)
        for slot in range(4)
    ]


def train(device: torch.device) -> list[float]:
    """training_step.cpp in Python: a loss for each step."""
    torch.manual_seed(0)
    features = torch.randn(2, 4, 8).to(device)  # from one start on every device
    target = torch.tensor(
        [[0.3, 0.3, 0.2, 0.4], [0.7, 0.4, 0.3, 0.3], [0.5, 0.8, 0.8, 0.2], [0.4, 0.6, 0.5, 0.5]],
        device=device,
    )
    offsets = torch.tensor([0, 3, 4], device=device)
    head = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4), nn.Sigmoid()).to(device)
    optimizer = torch.optim.SGD(head.parameters(), 0.1, momentum=0.9, foreach=False)  # as in C++
    formats: Any = {"pred_format": "cxcywh", "target_format": "cxcywh"}
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = box_loss(head(features), target, "ciou", offsets=offsets, **formats)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.long
def test_training_step(programs: Path, device: torch.device) -> None:
    losses = train(device)
    assert losses[-1] < losses[0] / 2

    lines = output_of(programs / "training_step", device.type).splitlines()

    assert lines == [f"step {step}: loss {loss:.6f}" for step, loss in enumerate(losses)]


@pytest.mark.long
def test_aot_inductor(programs: Path, exported: Path) -> None:
    package, again = output_of(programs / "aot_inductor", exported).splitlines()
    loss = package.removeprefix("package: loss ")
    assert float(loss) > 0
    assert again == f"box_loss: {loss}"


# --- Files that name the operators, in a process that has not loaded them ---

MINOR = ".".join(torch.__version__.split(".")[:2])
LIBRARY = Path(boxloss.__file__).parent / "lib" / f"libboxloss_torch-{MINOR}.so"


def needs_the_operators(load: str, error: str, operators: str) -> None:
    """Loading the file is that error, which docs/deploy.md shows, until there are operators."""
    code = f"""
import torch
try:
    {load}
except Exception as error:
    print(error)
{operators}
{load}
"""
    assert error in output_of(sys.executable, "-c", code)
    assert error in (ROOT / "docs" / "deploy.md").read_text()


@pytest.mark.long
def test_a_package_needs_the_operators(exported: Path) -> None:
    load = f"torch._inductor.aoti_load_package({str(exported)!r})"
    error = "Could not find schema for boxloss::box_loss."
    needs_the_operators(load, error, "import boxloss.torch")


def test_a_torchscript_file_needs_the_operators(tmp_path: Path) -> None:
    path = str(tmp_path / "loss.pt")
    torch.jit.script(generalized_box_iou_loss).save(path)
    error = "Unknown builtin op: boxloss::box_loss."
    library = f"import ctypes; ctypes.CDLL({str(LIBRARY)!r})"
    needs_the_operators(f"torch.jit.load({path!r})", error, library)


# --- A project's CMakeLists.txt ---


def test_the_package_is_read_whatever_the_projects_policies(tmp_path: Path) -> None:
    """Newer versions of CMake refuse such a project, but not what it finds."""
    lines = "project(bare LANGUAGES CXX)\nfind_package(boxloss REQUIRED COMPONENTS torch)\n"
    (tmp_path / "CMakeLists.txt").write_text(lines)
    configured = configure(tmp_path, tmp_path / "build")
    assert "boxloss-config" not in configured.stderr


# --- The pages ---


@pytest.mark.parametrize(
    ("page", "kinds", "blocks_at_least"),
    [
        ("../README.md", "cmake|cpp", 2),
        ("cpp.md", "cmake|cpp|python", 4),
        ("deploy.md", "cmake|cpp|python", 4),
        ("backends.md", "cmake|cpp|python", 6),
    ],
)
def test_the_page_shows_what_is_tested(page: str, kinds: str, blocks_at_least: int) -> None:
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(rf"^```(?:{kinds})\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    projects = [*EXAMPLES.parent.glob("*/*"), *(ROOT / "tests" / "install").glob("*/*")]
    sources = [path.read_text() for path in projects if path.is_file()]
    assert len(blocks) >= blocks_at_least
    for block in blocks:
        assert any(block in source for source in sources), block


def test_the_table_of_operations_has_the_headers_names() -> None:
    headers = ROOT / "core" / "include" / "boxloss"
    text = (ROOT / "docs" / "cpp.md").read_text().split("## Every operation")[1]
    rows = [
        line.split("|")[2:6] for line in text.split("\n## ")[0].splitlines() if ".hpp` |" in line
    ]
    includes = (headers / "registry.hpp").read_text()
    assert {header.strip(" `") for *_, header in rows} == {
        name for name in re.findall("<boxloss/(.*)>", includes) if name != "set.hpp"
    }
    for *names, header in rows:
        source = (headers / header.strip(" `")).read_text()
        for name in re.findall(r"`(?:float\* )?(\w+)`", "".join(names)):
            assert re.search(rf"\b{name}\b", source), name
