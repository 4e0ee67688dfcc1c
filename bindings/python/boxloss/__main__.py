# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m boxloss``: what this build holds and what it finds on this machine."""

import torch

import boxloss
from boxloss.torch import cpu_capability, implementations


def main() -> None:
    print(f"boxloss {boxloss.__version__} on torch {torch.__version__}")
    print("implementations:")
    for name in implementations():
        print(f"  {name}")
    print(f"cpu/native uses: {cpu_capability()}")
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            print(f"cuda:{index}: {torch.cuda.get_device_name(index)}")
    else:
        print("no GPU that torch can use")


if __name__ == "__main__":
    main()
