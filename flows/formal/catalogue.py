"""The list of all proofs."""

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from vitruvian.common.errors import UserError
from vitruvian.common.validate import shortened
from vitruvian.common.wings import registered
from vitruvian.flows.formal import (
    addresses,
    arithmetic,
    assignment,
    rvbna,
    streams_bus,
    streams_core,
    streams_cube,
    streams_mma,
    streams_registers,
    streams_scu,
    streams_vector,
)
from vitruvian.flows.formal.proof import Proof

PROOFS: tuple[Proof, ...] = (
    *streams_cube.PROOFS,
    *streams_mma.PROOFS,
    *streams_scu.PROOFS,
    *addresses.PROOFS,
    *streams_vector.PROOFS,
    *streams_bus.PROOFS,
    *streams_registers.PROOFS,
    *streams_core.PROOFS,
    *assignment.PROOFS,
    *arithmetic.PROOFS,
    *rvbna.PROOFS,
    *(proof for module in registered("proofs") for proof in module.PROOFS),
)


def matching(patterns: Sequence[str]) -> list[Proof]:
    """Return the proofs whose names match one of the shell patterns; all without a pattern.

    Raises
    ------
    UserError
        If a pattern matches no name; the message has the nearest names.
    """
    names = [proof.name for proof in PROOFS]
    chosen: set[str] = set()
    for pattern in patterns or ["*"]:
        found = {name for name in names if fnmatchcase(name, pattern)}
        if not found:
            near = get_close_matches(pattern, names, cutoff=0.3) or names
            raise UserError(
                f"proof must match a name such as {', '.join(near)} "
                f"(vitruvian formal --list), not {shortened(pattern)}"
            )
        chosen |= found
    return [proof for proof in PROOFS if proof.name in chosen]
