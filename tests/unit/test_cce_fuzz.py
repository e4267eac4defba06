"""Whatever is done to a kernel's text, the answer is a run or one line with a place."""

import random
import re
from pathlib import Path

import pytest

from sim.davinci.cce import CceError, read
from tests.unit.cce_sinks import Recorder

KERNELS = sorted((Path(__file__).parent / "cce_kernels").glob("*.cce"))
WORD = re.compile(r"\w+|\s+|[^\w\s]")
STRANGE = "0 -1 ( ) { } ; * & half 1e9 0x ' \" # < > [ ] 1.5f nullptr int".split()


def mutated(text: str, rng: random.Random) -> str:
    """A word deleted, doubled, exchanged or replaced, up to three times."""
    words = WORD.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(words) - 1)
        kind = rng.randrange(5)
        if kind == 0:
            del words[at]
        elif kind == 1:
            words.insert(at, rng.choice(words))
        elif kind == 2:
            words[at] = rng.choice(words)
        elif kind == 3:
            words[at], words[at + 1] = words[at + 1], words[at]
        else:
            words[at] = rng.choice(STRANGE)
    return "".join(words)


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_mutated_kernels(path):
    rng = random.Random(path.stem)
    text, answers = path.read_text(), []
    for _ in range(40):
        try:
            kernel = read(mutated(text, rng), "k.cce", defines={"__DAV_C220_CUBE__": "1"})
            pointers = [4096 * (i + 1) for i in range(len(kernel.parameters))]
            values = [
                p if q.is_pointer else 5 for p, q in zip(pointers, kernel.parameters, strict=True)
            ]
            kernel.run(Recorder(), values, limit=2000)
            answers.append("")
        except CceError as error:
            answers.append(str(error))
    for answer in filter(None, answers):
        assert re.fullmatch(r"k\.cce:\d+:\d+: [^\n]+", answer), answer
    assert len(set(answers)) > 15
