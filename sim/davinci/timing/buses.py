"""The numbering of the buses that a lowered program uses."""

from collections.abc import Sequence

import numpy as np

from vitruvian.sim.davinci.chip.model import ATTO, Chip


class BusNumbers:
    """The numbers of the buses in use; a bus that each core has gets one number per core."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.numbers: dict[tuple[str, int], int] = {}

    def number(self, name: str | None, core: int) -> int:
        """Return the number of a bus that an instruction of a core uses; −1 for none."""
        if name is None:
            return -1
        key = (name, core if self.chip.buses[name].per_core else 0)
        return self.numbers.setdefault(key, len(self.numbers))

    def numbered(
        self, names: Sequence[str | None], which: np.ndarray, core_of: np.ndarray
    ) -> np.ndarray:
        """Return ``Lowered.bus``, given the buses of the distinct times and their indices."""
        key = core_of * len(names) + which
        keys, first, place = np.unique(key, return_index=True, return_inverse=True)
        numbers = np.full(len(keys), -1, np.int32)
        # The numbers follow the order of the first instruction on each bus.
        for k in np.argsort(first).tolist():
            core, at = divmod(int(keys[k]), len(names))
            numbers[k] = self.number(names[at], core)
        return numbers[place]

    def totals(self) -> np.ndarray:
        """Return ``Lowered.totals`` of all buses that have a number."""
        # ``Bus.total`` repeats its last entry, so all buses can have rows of the same length.
        wide = max((len(b.totals) for b in self.chip.buses.values()), default=1)
        table = np.zeros((max(len(self.numbers), 1), wide))
        for (name, _), row in self.numbers.items():
            table[row] = [float(self.chip.buses[name].total(n + 1) / ATTO) for n in range(wide)]
        return table
