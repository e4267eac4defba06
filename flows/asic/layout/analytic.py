"""Analytic placement: nets pull cells together, and cells repel each other like charges.

The length of a net is smoothed (weighted average model), the density of the cells is a charge whose
field follows from a cosine transform, and Nesterov's method follows the slope of both. The weight
of the field grows until the cells overlap little (the method of ePlace).

References
----------
J. Lu et al., "ePlace: Electrostatics-based placement using fast Fourier transform and Nesterov's
method", TODAES 2015.
"""

import numpy as np

from vitruvian.common.extras import need
from vitruvian.flows.asic.layout.wires import Wires, bounds

#: Share of the room that cells and fillers cover together; more room stays free between clusters.
FILLED = 0.9
#: The weight of the field grows by at most this factor in a step. It does so if the wires become
#: no longer, and stays if they become longer by the share ``_LONGER``.
_FASTEST, _LONGER = 1.1, 0.015
#: Most halvings of a step.
_MOST_TRIALS = 10


def _norm(values: np.ndarray) -> float:
    """Return the Euclidean norm; a dot product would sum in the order of the threads."""
    return float(np.sqrt((values * values).sum()))


class ChargeField:
    """The field of rectangles of charge in a box.

    Parameters
    ----------
    box : (float, float)
        Width and height of the box.
    sizes : (cells, 2) ndarray of float
        Width and height of each cell.
    bins : int
        Number of bins along each axis.
    """

    def __init__(self, box: tuple[float, float], sizes: np.ndarray, bins: int) -> None:
        self.bins = bins
        self.bin = np.array(box) / bins
        self.charge = sizes[:, 0] * sizes[:, 1]
        # Cells narrower than a bin become wider and thinner, so that the field is smooth.
        self.sizes = np.maximum(sizes, np.sqrt(2) * self.bin)
        self._thin = self.charge / (self.sizes[:, 0] * self.sizes[:, 1])
        self._waves = [np.pi * np.arange(bins) / length for length in box]
        square = self._waves[0][:, None] ** 2 + self._waves[1][None] ** 2
        square[0, 0] = np.inf  # the mean of the charge has no field
        self._inverse = 1 / square

    def _shares(self, at: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the bins that every cell meets along an axis, and its length in each."""
        width, step = self.sizes[:, axis], self.bin[axis]
        low, high = at[:, axis] - width / 2, at[:, axis] + width / 2
        first = np.clip((low / step).astype(np.int64), 0, self.bins - 1)
        most = int(np.ceil(width.max() / step)) + 1
        met = first + np.arange(most)[:, None]
        length = np.minimum(high, (met + 1) * step) - np.maximum(low, met * step)
        inside = met < self.bins
        return np.where(inside, met, self.bins - 1), np.maximum(length, 0) * inside

    def slopes(self, at: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the slope of the energy at every cell, and the density of the first cells.

        Returns
        -------
        slopes : (cells, 2) ndarray of float
        density : (bins, bins) ndarray of float
            Share of each bin that the first ``count`` cells cover.
        """
        fft = need("scipy.fft", "layout")
        (columns, wide), (lines, tall) = self._shares(at, 0), self._shares(at, 1)
        number = columns[:, None] * self.bins + lines
        weight = wide[:, None] * tall * self._thin
        area, shape = self.bin[0] * self.bin[1], (self.bins, self.bins)

        def spread(cells: slice) -> np.ndarray:
            bins, weights = number[:, :, cells].ravel(), weight[:, :, cells].ravel()
            return np.bincount(bins, weights, self.bins**2).reshape(shape) / area

        potential = fft.dctn(spread(slice(None)), type=2) / (2 * self.bins) ** 2 * self._inverse
        slopes = np.empty_like(at)
        for axis in (0, 1):
            # The derivative of a sum of cosines is a sum of sines, which begins at the first wave.
            waves = self._waves[axis][:, None] if axis == 0 else self._waves[axis][None]
            sines = np.roll(potential * waves, -1, axis)
            sines[(-1, slice(None)) if axis == 0 else (slice(None), -1)] = 0
            field = fft.dct(fft.dst(sines, type=3, axis=axis), type=3, axis=1 - axis)
            slopes[:, axis] = -(field.ravel()[number] * weight).sum((0, 1))
        return slopes, spread(slice(count))


def pulls(net: Wires, at: np.ndarray, smooth: float) -> np.ndarray:
    """Return the slope of the smoothed length of all nets along an axis, at every pin.

    Parameters
    ----------
    at : (pins,) ndarray of float
        Position of every pin along the axis.
    smooth : float
        Distance from the end of a net within which pins pull.
    """
    first, sizes = net.first[:-1], np.diff(net.first)
    found = np.zeros(len(at))
    for sign in (1.0, -1.0):
        ahead = sign * at
        ends = np.repeat(np.maximum.reduceat(ahead, first), sizes)
        weight = np.exp((ahead - ends) / smooth)
        total = np.add.reduceat(weight, first)
        mean = np.repeat(np.add.reduceat(weight * ahead, first) / total, sizes)
        found += sign * weight / np.repeat(total, sizes) * (1 + (ahead - mean) / smooth)
    return found


class AnalyticPlacer:
    """Cells in a box, the nets between them, and the steps that move them.

    Parameters
    ----------
    net : Wires
        The nets; positions of ports are those of ``ports``.
    ports : (ports, 2) ndarray of float
    box : (float, float)
        Width and height of the box, whose lower left corner is the origin.
    sizes : (cells, 2) ndarray of float
    """

    def __init__(
        self, net: Wires, ports: np.ndarray, box: tuple[float, float], sizes: np.ndarray
    ) -> None:
        self.count, self.box, self.cells = len(sizes), np.array(box), sizes
        self.ports = ports
        rng = np.random.default_rng(1)
        room = box[0] * box[1]
        self.filled = min(1.0, max(FILLED, (1 + float(sizes.prod(1).sum()) / room) / 2))
        # Fillers take up the room that the cells leave, so that cells need not fill it.
        filler = np.median(sizes, 0)
        fillers = int(max(0, self.filled * room - sizes.prod(1).sum()) / filler.prod())
        self.sizes = np.concatenate([sizes, np.repeat(filler[None], fillers, 0)])
        self.bins = int(np.clip(2 ** np.ceil(np.log2(np.sqrt(self.count))), 8, 256))
        # A little noise, always the same, keeps cells with equal nets apart.
        at = self.box / 2 + rng.normal(0, self.box.min() / 50, (self.count, 2))
        self.at = np.concatenate([at, rng.random((fillers, 2)) * self.box])
        self.overflow, self.steps = 1.0, 0
        self._weight = self._step = 0.0
        self.use(net)
        self.resize(self.sizes)

    def use(self, net: Wires) -> None:
        """Let other nets pull from now on."""
        self.net = net
        inside = net.cell < self.count
        self._inner = (net.cell[inside], inside)
        self._pins = np.maximum(np.bincount(net.cell[inside], minlength=self.count), 1)

    def resize(self, sizes: np.ndarray) -> None:
        """Give all cells and fillers new sizes."""
        self.sizes = sizes
        self.field = ChargeField((self.box[0], self.box[1]), sizes, self.bins)
        self._low = self.field.sizes / 2
        self._high = self.box - self._low
        self.at = self._inside(self.at)
        self._weight *= 0.1  # the wires find their way again before the field takes over

    def _inside(self, at: np.ndarray) -> np.ndarray:
        return np.minimum(np.maximum(at, self._low), self._high)

    def pin_places(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the position of all pins along both axes."""
        everything = np.concatenate([at[: self.count], self.ports])
        return everything[self.net.cell, 0] + self.net.offset, everything[self.net.cell, 1]

    def _slopes(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the slopes of wires and field, and note the overflow."""
        bin_size = float(self.field.bin.mean())
        smooth = 8 * bin_size * 10 ** ((min(self.overflow, 1.0) - 0.1) * 20 / 9 - 1)
        wires = np.zeros_like(at)
        cells, inside = self._inner
        if len(self.net.cell):
            for axis, places in enumerate(self.pin_places(at)):
                pull = pulls(self.net, places, smooth)[inside]
                wires[: self.count, axis] = np.bincount(cells, pull, self.count)
        field, density = self.field.slopes(at, self.count)
        over = np.maximum(density - 1.0, 0).sum() * self.field.bin.prod()
        self._over = float(over / self.field.charge[: self.count].sum())
        return wires, field

    def _slope(self, at: np.ndarray) -> np.ndarray:
        """Return the slope of wires and field, divided by how strongly it changes at each cell."""
        wires, field = self._slopes(at)
        stiff = self._weight * self.field.charge
        stiff[: self.count] += self._pins
        return (wires + self._weight * field) / np.maximum(stiff, 1.0)[:, None]

    def length(self) -> float:
        """Return the half perimeters of all nets."""
        return sum(
            float((high - low).sum()) for low, high in bounds(self.net, *self.pin_places(self.at))
        )

    def run(self, overflow: float, most: int) -> None:
        """Move the cells until a smaller share than ``overflow`` overlaps, or for some steps."""
        if not self.count:
            return
        if not self._weight:
            wires, field = self._slopes(self.at)
            self._weight = 0.01 * float(np.abs(wires).sum() / max(np.abs(field).sum(), 1e-300))
        now = main = self.at
        slope = self._slope(now)
        if not self._step:
            self._step = 0.1 * float(self.field.bin.mean() / max(np.abs(slope).max(), 1e-300))
        momentum, length = 1.0, self.length()
        for _ in range(most):
            following = (1 + np.sqrt(4 * momentum**2 + 1)) / 2
            for _ in range(_MOST_TRIALS):
                new = self._inside(now - self._step * slope)
                ahead = self._inside(new + (momentum - 1) / following * (new - main))
                there = self._slope(ahead)
                safe = _norm(ahead - now) / max(_norm(there - slope), 1e-300)
                shorter = safe < 0.95 * self._step
                self._step = safe
                if not shorter:
                    break
            main, now, slope, momentum = new, ahead, there, following
            self.at, before = main, length
            length, self.overflow = self.length(), self._over
            change = (length - before) / max(_LONGER * before, 1e-300)
            self._weight *= float(np.clip(_FASTEST ** (1 - change), 0.9, _FASTEST))
            self.steps += 1
            if self.overflow < overflow:
                break

    @property
    def middles(self) -> np.ndarray:
        """The middles of the cells, without the fillers."""
        return self.at[: self.count]
