"""The times of a channel by DRAMsim3 (Li et al. 2020), if the user has it.

DRAMsim3's program ``dramsim3main`` gets a configuration with the same channel as ours, and a trace
of the requests. It reports counts for each of many short epochs; the last one with a read or write
is the end.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.sim.sparse.dram_compiled import DramChannel

#: Cycles of the runs, in units of the least time; a longer one follows if requests are left.
_RUNS = (1.5, 4, 16, 64)

#: Epochs in the least time of the requests.
_EPOCHS = 500


def serve(
    command: str, channel: DramChannel, atom_bytes: int, atoms: np.ndarray, writes: np.ndarray
) -> tuple[int, int]:
    """Return the cycles up to the last command's data, and the activates.

    Parameters
    ----------
    command : str
        Path of the program ``dramsim3main``.

    Raises
    ------
    UserError
        If the program cannot be run, or does not serve all requests.
    """
    program = Path(command)
    if not program.is_file():
        raise UserError(f"DRAM simulator must be the file of dramsim3main, not {command!r}")
    least = len(atoms) * channel.burst
    period = max(20, least // _EPOCHS)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "channel.ini").write_text(configuration(channel, atom_bytes, period))
        kinds = np.where(writes, "WRITE", "READ")
        lines = (
            f"0x{a * atom_bytes:x} {k} 0\n" for a, k in zip(atoms.tolist(), kinds, strict=True)
        )
        (place / "requests.txt").write_text("".join(lines))
        for factor in _RUNS:
            cycles = int(least * factor) + 2 * channel.refi + 1000
            epochs = _run(program, place, cycles)
            done, columns, activates = (
                np.array([epoch[name] for epoch in epochs])
                for name in ("num_done", "num_column_cmds", "num_act_cmds")
            )
            last = int(np.flatnonzero(columns)[-1])
            left = len(atoms) - int(done.sum())
            # The simulator merges requests of a burst, and leaves some writes in its buffer when
            # nothing follows, so that commands are no measure of what is done.
            if left <= 0 and last < len(columns) - 1:
                part = min(period, int(columns[last]) * channel.burst)
                return last * period + part + channel.cl, int(activates.sum())
    raise UserError(f"DRAM simulator must serve all requests, {left:,} are left")


def configuration(channel: DramChannel, atom_bytes: int, period: int) -> str:
    """Return the configuration file of DRAMsim3 for one channel."""
    length = 2 * channel.burst
    timing = {
        "tCK": 1,
        "CL": channel.cl,
        "CWL": channel.cwl,
        "tRCDRD": channel.rcd_read,
        "tRCDWR": channel.rcd_write,
        "tRP": channel.rp,
        "tRAS": channel.ras,
        "tRFC": channel.rfc,
        # Without refresh, the first one would come after any run.
        "tREFI": channel.refi or 1 << 30,
        "tRRD_S": channel.rrd_s,
        "tRRD_L": channel.rrd_l,
        "tWTR_S": channel.wtr_s,
        "tWTR_L": channel.wtr_l,
        "tFAW": channel.faw,
        "tWR": channel.wr,
        "tCCD_S": channel.ccd_s,
        "tCCD_L": channel.ccd_l,
        "tRTP": channel.rtp,
        "tRTRS": channel.turn,
    }
    sections = {
        "dram_structure": {
            "protocol": "HBM",
            "bankgroups": channel.groups,
            "banks_per_group": channel.group_banks,
            "rows": 32768,
            # A column of an HBM holds two transfers.
            "columns": channel.row_atoms * length // 2,
            "device_width": 8 * atom_bytes // length,
            "BL": length,
        },
        "timing": timing,
        "system": {
            "channel_size": 1024,
            "channels": 1,
            "bus_width": 8 * atom_bytes // length,
            "address_mapping": "rorabgbachco",
            "queue_structure": "PER_BANK",
            "row_buf_policy": "OPEN_PAGE",
            "cmd_queue_size": channel.bank_queue,
            "trans_queue_size": channel.queue,
            "unified_queue": "False",
        },
        "other": {"epoch_period": period, "output_level": 1},
    }
    return "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in table.items())
        for name, table in sections.items()
    )


def _run(program: Path, folder: Path, cycles: int) -> list[dict[str, int]]:
    """Run DRAMsim3 and return the counts of each epoch."""
    command = [str(program), "channel.ini", "-c", str(cycles), "-t", "requests.txt", "-o", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    try:
        found = json.loads((folder / "dramsim3epoch.json").read_text())
        epochs = [epoch.get("0", epoch) for epoch in found]
        return [
            {
                "num_done": epoch["num_reads_done"] + epoch["num_writes_done"],
                "num_act_cmds": epoch["num_act_cmds"],
                "num_column_cmds": epoch["num_read_cmds"] + epoch["num_write_cmds"],
            }
            for epoch in epochs
        ]
    except (OSError, ValueError, KeyError, TypeError):
        text = (done.stderr or done.stdout).strip().splitlines()
        shown = text[-1] if text else f"exit code {done.returncode}"
        raise UserError(
            f"DRAM simulator must be a dramsim3main that writes epochs, not {str(program)!r} "
            f"({shown})"
        ) from None
