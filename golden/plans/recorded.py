"""Plans of calls that were recorded on a GPU."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from vitruvian.common.errors import UserError

from .plan import Plan

#: GPUs with a file of recorded calls.
GPUS = ("h200",)


@dataclass(frozen=True, kw_only=True)
class LibraryCall:
    """A call of PyTorch whose kernel a library chooses.

    Attributes
    ----------
    op : str
        mm, linear, bmm, scaled (``_scaled_mm``), or mm32 (``mm`` with results in FP32).
    a, b : str
        Formats of the operands.
    m, k, n : int
    batch : int
        Matrices of ``bmm``.
    layout : str
        nn, nt, tn or tt: whether A and B are transposed views ("t"); those of FP8 are nt.
    output : str
    fast : bool
        ``use_fast_accum`` of ``_scaled_mm``.
    scales, bias
        As those of ``Plan``.
    """

    op: str
    a: str
    b: str
    m: int
    k: int
    n: int
    batch: int = 1
    layout: str = "nn"
    output: str
    fast: bool = False
    scales: str = ""
    bias: bool = False

    def __str__(self) -> str:
        formats = self.a if self.a == self.b else f"{self.a}x{self.b}"
        more = [word for word, on in (("fast", self.fast), ("bias", self.bias)) if on]
        more += [f"factors by {self.scales}"] if self.scales else []
        size = f"{self.m}×{self.k}×{self.n}"
        size = size if self.batch == 1 else f"{self.batch}×{size}"
        return " ".join((self.op, formats, size, self.layout, "to", self.output, *more))


def check_gpu(gpu: str) -> None:
    """Raise an error if no calls were recorded on a GPU.

    Raises
    ------
    UserError
        With those that there are.
    """
    if gpu not in GPUS:
        raise UserError(f"gpu must be one of {', '.join(GPUS)}, not {gpu!r}")


@lru_cache
def recorded(gpu: str = "h200") -> Mapping[LibraryCall, Plan]:
    """Return the plans of all calls that were recorded on a GPU.

    Raises
    ------
    UserError
        If there are none.

    Examples
    --------
    >>> len(recorded("h200"))
    959
    """
    check_gpu(gpu)
    text = files("vitruvian.golden.plans").joinpath(f"cublas_{gpu}.csv").read_text()
    return MappingProxyType(_plans(text))


def load(path: str | Path) -> Mapping[LibraryCall, Plan]:
    r"""Return the plans of a file that ``vitruvian plans fit`` wrote.

    Raises
    ------
    UserError
        If the file cannot be read, or is no table of plans.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> columns = "op,a,b,m,k,n,batch,layout,output,fast,scales,bias"
    >>> columns += ",rule,step,restart,starts,cyclic,remainder_first"
    >>> row = "mm,fp16,fp16,8,64,8,1,nt,fp16,0,,0,a100_mma_fp16_fp32,,,0 32,,"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "plans.csv")
    ...     _ = path.write_text(f"{columns}\n{row}\n")
    ...     ((call, plan),) = load(path).items()
    >>> print(plan)
    a100_mma_fp16_fp32; 8 terms a step; 2 slices from 0, 32; to fp16 (measured)
    """
    try:
        return MappingProxyType(_plans(Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"a file of plans must be readable: {error}") from None
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise UserError(f"{path} must be a table of plans: {error!r}") from None


def _plans(text: str) -> dict[LibraryCall, Plan]:
    found: dict[LibraryCall, Plan] = {}
    for row in csv.DictReader(text.splitlines()):
        call = LibraryCall(
            op=row["op"],
            a=row["a"],
            b=row["b"],
            m=int(row["m"]),
            k=int(row["k"]),
            n=int(row["n"]),
            batch=int(row["batch"]),
            layout=row["layout"],
            output=row["output"],
            fast=row["fast"] == "1",
            scales=row["scales"],
            bias=row["bias"] == "1",
        )
        tile, _, count = row["cyclic"].partition(" ")
        found[call] = Plan(
            rule=row["rule"],
            step=int(row["step"]) if row["step"] else None,
            restart=int(row["restart"] or 0),
            starts=tuple(map(int, row["starts"].split())) or (0,),
            cyclic=(int(tile), int(count)) if tile else None,
            remainder_first=int(row["remainder_first"] or 0),
            scales=call.scales,
            bias=call.bias,
            output=call.output,
            evidence="measured",
        )
    return found
