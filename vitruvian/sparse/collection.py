"""The matrices of Zhang 2024, Table 4.1, in the SuiteSparse Matrix Collection, and their download.

Group and name are identified by the published sizes (``sim.sparse.originals``). ``fetch`` compares
rows and entries with the file. Nothing else in this project needs the network.

>>> from vitruvian.sparse import collection
>>> print(collection.listing())  # doctest: +SKIP
>>> path = collection.fetch("gy", "matrices")  # doctest: +SKIP
"""

import difflib
import tarfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

from vitruvian.common.errors import UserError, WorkError
from vitruvian.common.files import open_whole
from vitruvian.common.progress import Progress
from vitruvian.sim.sparse.originals import ORIGINALS, Original

#: Folder of the files in Matrix Market form; tests replace it
_SITE = "https://suitesparse-collection-website.herokuapp.com/MM"

#: Seconds without any data after which a download is given up
_TIMEOUT_S = 60

_CHUNK = 1 << 20


#: The matrices of Table 4.1 by their two letters
MATRICES = ORIGINALS


def url(matrix: Original) -> str:
    """Return the address of a matrix: a packed file in Matrix Market form."""
    return f"{_SITE}/{matrix.place}.tar.gz"


def listing() -> str:
    """Return a table of the matrices as text: letters, place, sizes and addresses."""
    lines = [f"{'':4}{'group/name':<28}{'rows':>12}{'nonzeros':>12}  address"]
    for letters, entry in MATRICES.items():
        lines.append(
            f"{letters:4}{entry.place:<28}{entry.rows:>12,}{entry.nonzeros:>12,}  {url(entry)}"
        )
    return "\n".join(lines)


def fetch(matrix: str, folder: str | Path = ".") -> Path:
    """Download a matrix of Table 4.1 and unpack its Matrix Market file.

    Nothing is downloaded if the file is there. Standard error shows the progress.

    Parameters
    ----------
    matrix : str
        The two letters of the table, or the name in the collection.
    folder : str or path
        Where ``NAME.mtx`` is written.

    Returns
    -------
    path
        For ``vitruvian.sparse.solve``.

    Raises
    ------
    ValueError
        If there is no such matrix.
    WorkError
        If the download fails, or the file has other sizes than published. The file is written
        completely or not at all.
    """
    entry = _entry(matrix)
    target = Path(folder) / f"{entry.name}.mtx"
    if target.exists():
        return target
    task = f"fetch {entry.place}"
    try:
        with (
            urllib.request.urlopen(url(entry), timeout=_TIMEOUT_S) as response,
            Progress(task, bar=False, counts=False) as progress,
            tarfile.open(fileobj=response, mode="r|gz") as archive,
        ):
            for member in archive:
                if Path(member.name).name == target.name and member.isfile():
                    file = archive.extractfile(member)
                    assert file is not None
                    _write(file, target, entry, member.size, progress)
                    return target
    except (urllib.error.URLError, OSError, EOFError, tarfile.TarError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise WorkError(
            f"{url(entry)} cannot be fetched to {target}: {reason}; download it by other means and "
            f"unpack {target.name}"
        ) from None
    raise WorkError(f"{url(entry)} must contain {target.name}, and it does not")


def _entry(matrix: str) -> Original:
    """Return a matrix by its letters or its name."""
    for letters, entry in MATRICES.items():
        if matrix in (letters, entry.name, entry.place):
            return entry
    names = [*MATRICES, *(entry.name for entry in MATRICES.values())]
    near = difflib.get_close_matches(matrix, names, 1) if isinstance(matrix, str) else []
    hint = f"; the nearest is {near[0]}" if near else ""
    raise UserError(f"matrix must be one of {', '.join(MATRICES)}, not {matrix!r}{hint}")


def _write(file: IO[bytes], target: Path, entry: Original, size: int, progress: Progress) -> None:
    """Write an unpacked file, if its line of sizes has the published numbers."""
    head, done = b"", 0
    with open_whole(target) as output:
        while chunk := file.read(_CHUNK):
            if done < _CHUNK:
                head += chunk
            output.write(chunk)
            done += len(chunk)
            progress.update(note=f"{done >> 20} of {size >> 20} MiB")
        lines = (line.split() for line in head.splitlines() if not line.startswith(b"%"))
        sizes = next((line for line in lines if line), [])
        if sizes != [b"%d" % entry.rows, b"%d" % entry.rows, b"%d" % entry.nonzeros]:
            found = b" ".join(sizes[:3]).decode(errors="replace")
            raise WorkError(
                f"{url(entry)} must have {entry.rows} rows and {entry.nonzeros} entries, as "
                f"Table 4.1 states, not the sizes {found!r}"
            )
