"""Run proofs and their mutations, and report what each of them proves or catches."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from vitruvian.common.files import write_whole
from vitruvian.flows.formal.engine import LIMIT_S, ProofOutcome, prove
from vitruvian.flows.formal.proof import Mutation, Proof

HEADER = ("property", "component", "method", "result", "seconds", "mutation", "caught")


@dataclass(frozen=True, kw_only=True)
class ProofRow:
    """The outcome of a proof, or of a mutation that it must catch.

    Attributes
    ----------
    proof : Proof
    mutation : Mutation or None
    outcome : ProofOutcome
    """

    proof: Proof
    mutation: Mutation | None
    outcome: ProofOutcome

    @property
    def passed(self) -> bool:
        """True if the property holds, or if the mutation breaks it."""
        # An open outcome is None, which passes neither as a proof nor as a mutation.
        return self.outcome.holds is (self.mutation is None)

    @property
    def name(self) -> str:
        """The proof's name, with the number of the mutation if there is one."""
        if self.mutation is None:
            return self.proof.name
        return f"{self.proof.name}.{self.proof.mutations.index(self.mutation) + 1}"

    def line(self) -> str:
        """Return one line that says what happened."""
        o = self.outcome
        if o.holds is False:
            rules = ", ".join(o.broken) or "a rule"
            what = f"the mutation “{self.mutation.name}” breaks" if self.mutation else "broken:"
            return f"{self.name}: {what} {rules} in cycle {o.cycle}"
        if self.mutation is not None:
            seen = "is not caught" if o.holds else f"is undecided ({o.detail})"
            return f"{self.name}: the mutation “{self.mutation.name}” {seen}"
        state = "holds" if o.holds else "is undecided"
        return f"{self.name}: {state} ({o.detail})"

    def as_json(self) -> dict[str, object]:
        """Return the row as plain data, without the waveform."""
        o = self.outcome
        return {
            "name": self.proof.name,
            "component": self.proof.component,
            "claim": self.proof.claim,
            "method": self.proof.method,
            "mutation": self.mutation.name if self.mutation else None,
            "holds": o.holds,
            "passed": self.passed,
            "seconds": o.seconds,
            "detail": o.detail,
            "broken": list(o.broken),
            "cycle": o.cycle,
            "cached": o.cached,
        }


def run(
    proofs: Sequence[Proof],
    *,
    mutations: bool = False,
    cache: bool = True,
    jobs: int = 1,
    limit_s: int = LIMIT_S,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Iterator[ProofRow]:
    """Yield a row for each proof, and for each mutation if they are wanted, in any order.

    Parameters
    ----------
    mutations : bool
        If True, run every proof on each of its mutations as well.
    cache : bool
        If True, reuse stored outcomes and store new ones.
    jobs : int
        Number of provers at a time.
    limit_s : int
        Seconds after which a prover gives up.
    progress : callable
        Called with (description, tasks done, tasks in total).
    """
    tasks = [(p, m) for p in proofs for m in (None, *(p.mutations if mutations else ()))]
    with ThreadPoolExecutor(jobs) as pool:
        waiting: dict[Future[ProofOutcome], tuple[Proof, Mutation | None]] = {}
        try:
            for proof, mutation in tasks:
                # A mutation changes a class for all threads, so this thread elaborates.
                text = proof.to_rtlil(mutation)
                progress(f"prove {proof.name}", 0, len(tasks))
                job = pool.submit(prove, text, proof.method, limit_s=limit_s, cache=cache)
                waiting[job] = proof, mutation
            for number, job in enumerate(as_completed(waiting), 1):
                proof, mutation = waiting[job]
                progress(f"proved {proof.name}", number, len(tasks))
                yield ProofRow(proof=proof, mutation=mutation, outcome=job.result())
        # Also if the reader of the rows stops early: waiting provers must not start.
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def write_waveform(row: ProofRow, folder: Path) -> Path:
    """Write the waveform of a broken rule into ``folder`` and return its path."""
    path = folder / f"{row.name}.vcd"
    write_whole(path, row.outcome.vcd)
    return path


def cells(rows: Sequence[ProofRow], proofs: Sequence[Proof]) -> list[list[str]]:
    """Return the lines of the table: a line for each proof and each mutation, in their order."""
    lines: list[list[str]] = []
    known = {row.name: row for row in rows}
    for proof in proofs:
        row = known.get(proof.name)
        if row is None:
            continue
        o = row.outcome
        result = {True: "holds", False: "BROKEN", None: "open"}[o.holds]
        head = [proof.name, proof.component, proof.method, result, f"{o.seconds:.1f}"]
        for number, mutation in enumerate(proof.mutations, 1):
            mutant = known.get(f"{proof.name}.{number}")
            caught = "not run"
            if mutant is not None:
                m = mutant.outcome
                caught = f"{', '.join(m.broken)} in cycle {m.cycle}" if mutant.passed else "NO"
            lines.append([*head, mutation.name, caught])
            head = [""] * len(head)
        if not proof.mutations:
            lines.append([*head, "–", "–"])
    return lines
