# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Loads the handlers, checks calls while JAX traces, and makes them."""

import ctypes
import re
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

try:
    import jax
except ModuleNotFoundError as error:
    raise ImportError(f"boxloss.jax needs JAX: {sys.executable} -m pip install jax") from error
import jax.numpy as jnp
from jax import Array

from boxloss import __version__, _libraries

_LIBRARY = _libraries.JAX
_ERRORS = (ValueError, TypeError, RuntimeError)


Results = TypeVar("Results", bound=type[Any])


def exportable(results: Results) -> Results:
    """A named tuple of a function's results, which a program of jax.export may be saved with.

    Old versions of jax.export need absl, which JAX does not bring: then nobody exports.
    """
    with suppress(ModuleNotFoundError):
        from jax.export import register_namedtuple_serialization as register

        register(results, serialized_name=f"boxloss.jax.{results.__name__}")
    return results


class _Array(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("dimensions", ctypes.c_int64),
    )


class _Option(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("word", ctypes.c_char_p),
        ("number", ctypes.c_double),
    )


class _Result(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("shape", ctypes.c_int64 * 8),
        ("dimensions", ctypes.c_int64),
    )


class _Traced(ctypes.Structure):
    _fields_ = (
        ("arrays", ctypes.POINTER(_Array)),
        ("array_count", ctypes.c_int64),
        ("options", ctypes.POINTER(_Option)),
        ("option_count", ctypes.c_int64),
        ("workspace_bytes", ctypes.c_int64),
        ("error", ctypes.c_int64),
        ("results", _Result * 4),
        ("result_count", ctypes.c_int64),
    )


def _installed_minor() -> int:
    """The minor number of XLA's interface in the installed jaxlib."""
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    found = re.search(r"define XLA_FFI_API_MINOR (\d+)", header.read_text())
    if found is None:
        raise ImportError(f"boxloss.jax: {header} does not tell the number of its interface")
    return int(found[1])


def _load() -> ctypes.CDLL:
    installed = jax.lib.__version__
    if tuple(map(int, installed.split(".")[:2])) < (0, 6):
        raise ImportError(
            f"boxloss {__version__} needs jaxlib 0.6 or later; this is jaxlib {installed}"
        )
    if not _LIBRARY.exists():
        raise ImportError(
            f"this boxloss {__version__} was built without JAX: {_LIBRARY} is missing. Build it "
            f"where jaxlib is installed, {_libraries.how_to_build()}"
        )
    library = ctypes.CDLL(str(_LIBRARY))
    minor = ctypes.c_int.in_dll(library, "boxloss_jax_ffi_minor").value
    # One that is too new would stop all of JAX: "Unable to initialize backend 'cpu'".
    if minor > _installed_minor():
        raise ImportError(
            f"boxloss.jax was compiled for XLA's interface 0.{minor}; jaxlib {installed} "
            f"has 0.{_installed_minor()}. Install a newer jaxlib, or build boxloss for this one"
        )
    handlers: bytes = ctypes.c_char_p.in_dll(library, "boxloss_jax_handlers").value or b""
    for target in (f"boxloss_jax_{name}" for name in handlers.decode().split()):
        for platform, suffix in (("cpu", "cpu"), ("CUDA", "gpu"), ("ROCM", "gpu")):
            handler = jax.ffi.pycapsule(getattr(library, f"{target}_{suffix}"))
            jax.ffi.register_ffi_target(target, handler, platform=platform)
    return library


_library = _load()


def index_dtype() -> str:
    """Of results that are indices: int32, or int64 with jax_enable_x64."""
    return str(jax.dtypes.canonicalize_dtype("int64").name)


Arrays = dict[str, Array]
Shapes = dict[str, jax.ShapeDtypeStruct]


def implementations() -> bytes:
    """All that there are: with another one a program may need more workspace."""
    ask = _library.boxloss_implementations
    ask.restype = ctypes.c_char_p
    return ask()  # type: ignore[no-any-return]


class Operation(NamedTuple):
    """A call but for its arrays."""

    target: str  # as XLA knows it
    function: str  # in errors
    options: dict[str, Any]
    wanted: tuple[str, ...] = ()  # of the results; all if none is named

    def shapes(self, arrays: Arrays) -> Shapes:
        """The results'; raises what is wrong with the arguments."""
        return self._traced(arrays)[0]

    def run(self, arrays: Arrays) -> Arrays:
        """The results by name."""
        wanted, workspace = self._traced(arrays)
        attributes = {
            # NumPy's number stays a double where JAX's would not.
            name: np.float64(each) if isinstance(each, float) else each
            for name, each in self.options.items()
            if each is not None and each != ()
        }
        shapes = {name: (each.shape, each.dtype) for name, each in (wanted | workspace).items()}
        results = _called(self.target, (*shapes.items(),), (*attributes.items(),), arrays)
        return dict(zip(wanted, results, strict=False))

    def _traced(self, arrays: Arrays) -> tuple[Shapes, Shapes]:
        """And the workspace's, if it takes one."""
        for name, each in arrays.items():
            if not all(isinstance(size, int) for size in each.shape):
                raise TypeError(
                    f"{self.function}: {name} has shape [{', '.join(map(str, each.shape))}]; it "
                    "must be of numbers, from which the workspace follows"
                )
        shapes = [(ctypes.c_int64 * each.ndim)(*each.shape) for each in arrays.values()]
        operands = [
            _Array(name.encode(), each.dtype.name.encode(), shape, each.ndim)
            for (name, each), shape in zip(arrays.items(), shapes, strict=True)
        ]
        chosen = [
            _Option(name.encode(), *((each.encode(), 0) if isinstance(each, str) else (None, each)))
            for name, value in self.options.items()
            for each in (value if isinstance(value, tuple) else (value,))
            if each is not None
        ]
        lists = (_Array * len(operands))(*operands), (_Option * len(chosen))(*chosen)
        trace = _Traced(lists[0], len(operands), lists[1], len(chosen))
        check = getattr(_library, f"{self.target}_check")
        check.restype = ctypes.c_char_p
        problem = check(ctypes.byref(trace))
        if problem is not None:
            raise _ERRORS[trace.error](f"{self.function}: {problem.decode()}")
        results = {
            each.name.decode(): jax.ShapeDtypeStruct(
                each.shape[: each.dimensions], each.dtype.decode()
            )
            for each in trace.results[: trace.result_count]
        }
        size = trace.workspace_bytes
        workspace = {"workspace": jax.ShapeDtypeStruct((size,), jnp.uint8)} if size else {}
        return {name: results[name] for name in self.wanted or results}, workspace


@partial(jax.jit, static_argnums=(0, 1, 2), inline=True)
def _called(
    target: str,
    results: tuple[tuple[str, tuple[Any, Any]], ...],
    attributes: tuple[tuple[str, Any], ...],
    arrays: Arrays,
) -> tuple[Array, ...]:
    """One function for all calls, so that JAX knows a program again that vmap makes of one."""
    wanted = [jax.ShapeDtypeStruct(*each) for _, each in results]
    if not is_jits(arrays):
        wanted = jax.eval_shape(partial(_varying, wanted), *arrays.values())
    handler = jax.ffi.ffi_call(target, wanted, vmap_method="sequential")
    names = {"operands": " ".join(arrays), "results": " ".join(name for name, _ in results)}
    lists = {name: np.array(each) for name, each in attributes if isinstance(each, tuple)}
    return tuple(handler(*arrays.values(), **names, **(dict(attributes) | lists)))


def is_jits(arrays: Arrays) -> bool:
    """Whether none varies over shard_map's devices, nor may do so by another name of JAX'."""

    def varying(array: Array) -> Any:
        kind = jax.typeof(array)
        of_manual_axes = getattr(kind, "manual_axis_type", None)
        return getattr(of_manual_axes, "varying", getattr(kind, "vma", None))

    return all(varying(each) == frozenset() for each in arrays.values())


def _varying(results: list[jax.ShapeDtypeStruct], *operands: Array) -> list[Array]:
    """Of these shapes and dtypes, varying over shard_map's devices as the operands do."""
    none = sum(each.ravel()[:0].sum().astype(jnp.float32) for each in operands)
    return [jnp.zeros(each.shape, each.dtype) + none.astype(each.dtype) for each in results]


def formula_program(name: str, *arguments: Any) -> str:
    """What one of core's formulas gives for one pair or logit: a line for each operation."""
    write = getattr(_library, f"boxloss_jax_{name}_formula")
    write.restype = ctypes.c_char_p
    text: bytes = write(*map(_as_c, arguments))
    return text.decode()


def _as_c(argument: Any) -> Any:
    """A word, a number, an array of numbers, or what ctypes knows."""
    if isinstance(argument, str):
        return argument.encode()
    if isinstance(argument, float):
        return ctypes.c_double(argument)
    return (ctypes.c_double * len(argument))(*argument) if isinstance(argument, tuple) else argument
