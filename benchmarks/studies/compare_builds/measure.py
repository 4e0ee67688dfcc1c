# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What one build says of itself, in a process of its own: the boxloss on its path may be any.

What it asks for, of boxloss.torch, are names that every build has had for long; what the problems
ask for beyond that is a refusal where it is missing.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import boxloss.torch
import torch

from .problems import ROTATED, draw_problems
from .results import records_of
from .times import times_of

# On every machine alike, and more than one, so that work is shared: aten's sums depend on it.
THREADS = 2


def words_of(function: str) -> tuple[str, ...]:
    known = getattr(boxloss.torch, function, None)
    return get_args(get_type_hints(known)["loss"]) if known else ()


def about() -> dict[str, Any]:
    rotated = [ROTATED + word for word in words_of("rotated_box_loss")]
    return {
        "site": str(Path(boxloss.torch.__file__).parents[2]),
        "losses": [*words_of("box_loss"), *rotated],
        "implementations": boxloss.torch.implementations(),
        "capability": boxloss.torch.cpu_capability(),
    }


def main() -> None:
    wanted, file, words = sys.argv[1:]
    options = json.loads(words)
    device = torch.device(options["device"])
    if wanted == "results":
        # Its word on nested tensors, which nobody here can heed.
        logging.getLogger("torch.fx").setLevel(logging.ERROR)
        torch.set_num_threads(THREADS)
        problems = list(draw_problems(options["losses"]))[:: options["every"]]
        records = {name: records_of(problems, name, device) for name in options["implementations"]}
        torch.save(records, file)
    else:
        found = about() if wanted == "about" else times_of(device, options["rows"])
        Path(file).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
