"""Print the area and energy that CACTI gives for the on-chip buffer of Zhang 2024.

    python benchmarks/sida_buffer.py FOLDER

FOLDER contains CACTI 7 as built from its source, with its file ``cache.cfg``; the package
hwcomponents-cacti 1.0.40 of PyPI has one (folder ``hwcomponents_cacti/cacti``, command ``make``).
This script replaces size, process, banks, cells and temperature in that file, and the cache by a
memory with a port of 64 bits. Rows: the 64 MiB of §4.5.1 at 45 nm, and 1 MiB in three processes,
beside whose energies stands that of Jouppi et al. 2021 in ``sim/sparse/sida.toml``.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

#: MiB, process in nm, kind of cells, banks
ROWS = (
    (64, 45, "hp", 1),
    (64, 45, "hp", 64),
    (64, 45, "lstp", 1),
    (64, 45, "lstp", 64),
    (1, 45, "hp", 1),
    (1, 32, "hp", 1),
    (1, 22, "hp", 1),
)


def configuration(text: str, mib: int, process_nm: int, cells: str, banks: int) -> str:
    """Return the text of a file of CACTI with a memory of 64-bit words in place of its cache."""
    given = {
        "-size (bytes)": str(mib << 20),
        "-block size (bytes)": "8",
        "-associativity": "1",
        "-UCA bank count": str(banks),
        "-technology (u)": f"{process_nm / 1000:.3f}",
        "-output/input bus width": "64",
        "-operating temperature (K)": "350",
        "-cache type": '"ram"',
        **{
            f"-{array} array {part} type -": f'"itrs-{cells}"'
            for array in ("Data", "Tag")
            for part in ("cell", "peripheral")
        },
    }
    kept = [line for line in text.splitlines() if not line.strip().startswith(tuple(given))]
    return "\n".join([*kept, *(f"{key} {value}" for key, value in given.items()), ""])


def estimate(
    folder: Path, mib: int, process_nm: int, cells: str, banks: int
) -> tuple[float, float]:
    """Return the area in mm² and the energy of a read in pJ.

    Raises
    ------
    ValueError
        If CACTI does not print them.
    """
    given = (folder / "cache.cfg").read_text()
    text = configuration(given, mib, process_nm, cells, banks)
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
        file.write(text)
        file.flush()
        # CACTI finds its processes relative to its own folder.
        command = [str(folder.resolve() / "cacti"), "-infile", file.name]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    area = re.search(r"Data array: Area \(mm2\): ([\d.]+)", done.stdout)
    energy = re.search(r"Total dynamic read energy per access \(nJ\): ([\d.]+)", done.stdout)
    if not (area and energy):
        raise ValueError(f"CACTI must print an area and an energy, not {done.stdout[-200:]!r}")
    return float(area[1]), 1e3 * float(energy[1])


def main() -> None:
    """Print the table."""
    if len(sys.argv) != 2:
        sys.exit("the folder of CACTI must be given")
    print("memory, process, cells, banks: mm², pJ for a read of 64 bits")
    for row in ROWS:
        area, energy = estimate(Path(sys.argv[1]), *row)
        mib, process_nm, cells, banks = row
        print(f"{mib} MiB, {process_nm} nm, itrs-{cells}, {banks}: {area:.1f}, {energy:.1f}")


if __name__ == "__main__":
    main()
