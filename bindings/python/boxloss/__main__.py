# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m boxloss``: what this build holds and what it finds on this machine."""

import boxloss
from boxloss._libraries import JAX, torch_versions


def print_torch() -> None:
    try:
        import torch
    except ImportError as error:
        print(f"torch cannot be imported: {error}")
        return
    from boxloss.torch import cpu_capability, implementations

    print(f"torch {torch.__version__}, implementations:")
    for name in implementations():
        print(f"  {name}")
    print(f"cpu/native uses: {cpu_capability()}")
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            print(f"cuda:{index}: {torch.cuda.get_device_name(index)}")
    else:
        print("no GPU that torch can use")


def main() -> None:
    operators = ", ".join(torch_versions()) or "(none)"
    jax = ", and handlers for JAX" if JAX.exists() else ""
    print(f"boxloss {boxloss.__version__}, with operators for torch {operators}{jax}")
    print_torch()


if __name__ == "__main__":
    main()
