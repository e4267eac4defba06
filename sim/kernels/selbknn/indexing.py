"""Emission of the smallest distance of a query and its index, with and without hardware indexing.

The distances of a query are one row of 16 in each fractal of a tile, so they are read with a block
stride of a fractal: eight fractals, 128 training points, in each repeat.
"""

from collections.abc import Mapping

import numpy as np

from vitruvian.common.validate import ceil_div, round_up
from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.kernels.kselection.shape import GROUP
from vitruvian.sim.kernels.ring import ordered
from vitruvian.sim.kernels.selbknn.golden import ABSENT

#: Training points in a repeat, and the most of a tile: the minima of its repeats, with their
#: lanes, are reduced in one repeat.
PER_REPEAT, MOST = 128, 8192

#: Blocks of 32 bytes from fractal to fractal, and from repeat to repeat.
_BLOCK, _STEP = 16, 128

#: Elements in a block.
_PER_BLOCK = 16

#: Smallest distances by query, with their columns.
_Found = Mapping[int, tuple[np.float16, int]]


def _row(distances: View, q: int) -> View:
    """Return the first block of the distances of a query."""
    return distances[0, q]


def _place(distances: View, q: int, column: int) -> View:
    """Return the distance of a query in a column of the tile."""
    return distances[column // GROUP, q, column % GROUP : column % GROUP + 1]


class HardIndex:
    """The minimum by vcmin, which also returns the lane.

    Parameters
    ----------
    n : int
        Most training points of a tile.
    """

    def __init__(self, core: Core, n: int) -> None:
        self.core = core
        # The minimum and its lane for each repeat, and then the minimum of these.
        # vcmin writes pairs of a minimum and its lane, hence two elements for each repeat.
        width = -(-2 * (n // PER_REPEAT) // _PER_BLOCK) * _PER_BLOCK
        self._minima = core.allocate("UB", (GROUP, width), "fp16", "minima of repeats")
        self._minimum = core.allocate("UB", (GROUP, 2), "fp16", "minimum")

    @staticmethod
    def scratch_bytes(n: int) -> int:
        """Return the bytes of the Unified Buffer that the constructor allocates."""
        return GROUP * (-(-4 * (n // PER_REPEAT) // 32) * 32 + 4)

    def reduce(self, distances: View, q: int) -> None:
        """Emit the minimum of a query."""
        repeat = distances.shape[0] // 8
        core = self.core
        core.vcmin(
            self._minima[q],
            _row(distances, q),
            repeat=repeat,
            src_block_stride=_BLOCK,
            src_repeat_stride=_STEP,
        )
        core.pipe_barrier(Unit.V)
        # The minima are every second element.
        mask = sum(1 << 2 * i for i in range(repeat))
        core.vcmin(self._minimum[q], self._minima[q], repeat=1, mask=mask)

    def remove(self, distances: View, found: _Found, minimum: View) -> None:
        """Emit the moves of the minima to ``minimum``, and replace them by +∞."""
        core = self.core
        ordered(core, Unit.V, Unit.S)
        for q, (value, column) in found.items():
            repeat, lane = divmod(column, PER_REPEAT)
            core.scalar_load(self._minimum[q, 0:1], expected=value)
            core.scalar_store(minimum[q : q + 1], value)
            # The lane of the second vcmin is the place of a pair, so that the repeat is half of it.
            core.scalar_load(self._minimum[q, 1:2].astype("uint16"), expected=2 * repeat)
            at = 2 * repeat + 1
            # The first vcmin left the lane within that repeat.
            core.scalar_load(self._minima[q, at : at + 1].astype("uint16"), expected=lane)
            core.scalar(text="address")
            core.scalar_store(_place(distances, q, column), np.inf)


class SoftIndex:
    """The minimum by a vcmin that returns no lane, and its index by Alg. 6.

    Parameters
    ----------
    n : int
        Most training points of a tile.
    compare : bool
        True if the core has vcmp and vsel; else Alg. 5 replaces them.
    """

    def __init__(self, core: Core, n: int, compare: bool) -> None:
        self.core, self.compare = core, compare
        per = n // PER_REPEAT
        width = round_up(per, _PER_BLOCK)
        self._minima = core.allocate("UB", (GROUP, width), "fp16", "minima of repeats")
        self._target = core.allocate("UB", (n,), "fp16", "target")
        self._numbers = core.allocate("UB", (n,), "uint16", "numbers")
        self._found = core.allocate("UB", (n,), "uint16", "numbers of the target")
        self._largest = core.allocate("UB", (width,), "fp16", "largest numbers of repeats")
        self._index = core.allocate("UB", (GROUP,), "uint16", "index")
        self._absent = core.allocate("UB", (PER_REPEAT,), "uint16", "absent")
        self._bits = core.allocate("UB", (n // 8,), "uint8", "bits")
        self._sign = core.allocate("UB", (PER_REPEAT,), "uint16", "sign bits")
        self._one = core.allocate("UB", (PER_REPEAT,), "uint16", "ones")
        self._part = core.allocate("UB", (n,), "uint16", "part")
        core.vdup(self._absent, ABSENT)
        core.vdup(self._sign, 0x8000)
        core.vdup(self._one, 1)
        self._fill_numbers()

    @staticmethod
    def scratch_bytes(n: int) -> int:
        """Return the bytes of the Unified Buffer that the constructor allocates."""
        width = ceil_div(n // PER_REPEAT, _PER_BLOCK) * 32
        return GROUP * width + 8 * n + width + 32 + 6 * PER_REPEAT + max(n // 8, 32)

    def _fill_numbers(self) -> None:
        """Emit the numbers 0, 1, 2, … : sixteen by scalar stores, then by additions."""
        core = self.core
        words = self._numbers.astype("int16")
        for i in range(_PER_BLOCK):
            core.scalar_store(self._numbers[i : i + 1], i)
        done = _PER_BLOCK
        while done < words.size:
            count = min(done, words.size - done)
            # Each addition doubles what is there: log2 of n instructions instead of n stores.
            core.vadds(words[done : done + count], words[:count], done)
            core.pipe_barrier(Unit.V)
            done += count

    def reduce(self, distances: View, q: int) -> None:
        """Emit the minimum of a query."""
        core = self.core
        core.vcmin(
            self._minima[q],
            _row(distances, q),
            repeat=distances.shape[0] // 8,
            src_block_stride=_BLOCK,
            src_repeat_stride=_STEP,
            order="value",
        )
        core.pipe_barrier(Unit.V)

    def remove(self, distances: View, found: _Found, minimum: View) -> None:
        """Emit the search of the minima, and replace them by +∞."""
        core, per = self.core, distances.shape[0] // 8
        for q in found:
            core.vcmin(
                minimum[q : q + 1], self._minima[q], repeat=1, mask=(1 << per) - 1, order="value"
            )
        ordered(core, Unit.V, Unit.S)
        for q, (value, _) in found.items():
            core.scalar_load(minimum[q : q + 1], expected=value)
            # Queries do not depend on each other here, so that one order of V and S serves all of
            # them.
            self._search(distances, q, value)
        ordered(core, Unit.V, Unit.S)
        for q, (_, column) in found.items():
            core.scalar_load(self._index[q : q + 1], expected=column)
            core.scalar(text="address")
            core.scalar_store(_place(distances, q, column), np.inf)

    def _search(self, distances: View, q: int, value: np.float16) -> None:
        """Emit Alg. 6."""
        core, per = self.core, distances.shape[0] // 8
        size = per * PER_REPEAT
        target, row = self._target[:size], _row(distances, q)
        core.vdup(target, float(value))
        core.pipe_barrier(Unit.V)
        found = self._found[:size]
        if self.compare:
            strides = {"src1": (_BLOCK, _STEP)}
            core.vcmpv(self._bits, target, row, "eq", repeat=per, strides=strides)
            core.pipe_barrier(Unit.V)
            core.vsel(
                found,
                self._numbers[:size],
                self._absent,
                self._bits,
                repeat=per,
                strides={"src1": (1, 0)},
            )
            core.pipe_barrier(Unit.V)
        else:
            self._search_by_relu(target, row, found, per)
        halves, largest = found.astype("fp16"), self._largest
        core.vcmax(largest, halves, repeat=per, order="value")
        core.pipe_barrier(Unit.V)
        index = self._index[q : q + 1].astype("fp16")
        core.vcmax(index, largest, repeat=1, mask=(1 << per) - 1, order="value")
        core.pipe_barrier(Unit.V)

    def _search_by_relu(self, target: View, row: View, found: View, per: int) -> None:
        """Emit lines 3 and 4 of Alg. 6 by Alg. 5: numbers of the target, and absent elsewhere."""
        core, part = self.core, self._part[: found.size]
        rows, same = (_BLOCK, _STEP), (1, 0)

        def whole(op: str, strides=None, **views: View) -> None:
            core.vector(op, views, repeat=per, strides=strides or {})
            core.pipe_barrier(Unit.V)

        differences = {"src0": target, "src1": row}, {"src0": row, "src1": target}
        places = {"src1": rows}, {"src0": rows}
        for dst, views, strides in zip((found, part), differences, places, strict=True):
            whole("vsub", strides, dst=dst.astype("fp16"), **views)
        whole("vor", dst=found, src0=found, src1=part)
        whole("vand", {"src1": same}, dst=found, src0=found, src1=self._sign)
        whole("vor", {"src1": same}, dst=found, src0=found, src1=self._one)
        halves, words = found.astype("fp16"), found.astype("int16")
        whole("vrelu", dst=halves, src=halves)
        whole("vsub", {"src1": same}, dst=words, src0=words, src1=self._one.astype("int16"))
        # ``found`` is now 0xffff where the distance is not the target.
        whole("vand", {"src1": same}, dst=part, src0=found, src1=self._absent)
        whole("vnot", dst=found, src=found)
        whole("vand", dst=found, src0=found, src1=self._numbers[: found.size])
        whole("vor", dst=found, src0=found, src1=part)
