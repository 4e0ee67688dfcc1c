# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Two processes, as a launcher starts them."""

import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from accelerate.utils import reduce
from torch import multiprocessing
from transformers.loss import loss_for_object_detection


def two_processes(function: Callable[..., None], *arguments: Any) -> None:
    """Calls function(rank, *arguments) in each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(_begin, (port, function, *arguments), nprocs=2)


def _begin(rank: int, port: int, function: Callable[..., None], *arguments: Any) -> None:
    torch.set_num_threads(1)
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
    names |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
    os.environ |= {key: str(value) for key, value in names.items()}
    function(rank, *arguments)


def divide_once(*modules: Any) -> None:
    """By the number of ranks; transformers' losses, also those of these modules, do it twice."""
    for module in (loss_for_object_detection, *modules):
        vars(module)["reduce"] = partial(reduce, reduction="sum")
