"""An iteration as the simulator sees it: one vxm and the element-wise operations behind it."""

from dataclasses import dataclass

__all__ = ["PAGERANK", "PLAIN", "Elementwise", "Workload"]


@dataclass(frozen=True)
class Elementwise:
    """An element-wise operation.

    Attributes
    ----------
    inputs : tuple of str
        Names of the vectors that it reads.
    output : str
        Name of the vector that it produces; empty for a reduction to a scalar.
    operations : int
        Operations of a processing element for each element of the vector.
    """

    inputs: tuple[str, ...]
    output: str
    operations: int


@dataclass(frozen=True)
class Workload:
    """An iteration: y = x·A, then element-wise operations that yield the x of the next one.

    Attributes
    ----------
    name : str
    elementwise : tuple of Elementwise
        In order; "x" and "y" are the input and the output of the vxm.
    carried : mapping of str to str, as pairs
        (name, produced): ``name`` of the next iteration is ``produced`` of this one. One of the
        names is "x".
    """

    name: str
    elementwise: tuple[Elementwise, ...]
    carried: tuple[tuple[str, str], ...]

    @property
    def operations(self) -> int:
        """Element-wise operations of an iteration for each element of the vector."""
        return sum(each.operations for each in self.elementwise)

    @property
    def external(self) -> tuple[str, ...]:
        """Vectors that the fused element-wise operations read from memory, each once."""
        made = {"y", *(each.output for each in self.elementwise)}
        names = [name for each in self.elementwise for name in each.inputs if name not in made]
        return tuple(dict.fromkeys(names))

    @property
    def unfused_vectors(self) -> int:
        """Vectors read or written if each element-wise operation goes through the memory."""
        return sum(len(set(each.inputs)) + bool(each.output) for each in self.elementwise)

    @property
    def handed_over(self) -> int:
        """Vectors that the first iteration of a pair writes for the second one.

        The new x goes to the IS core directly. It is written only if the element-wise operations
        of the second iteration read it too.
        """
        return sum(name in self.external for name, _ in self.carried)

    @property
    def oracle_vectors(self) -> int:
        """Vectors of a pair that are read or written even if every reuse succeeds.

        The x of the first iteration, counted elsewhere, is not among them.
        """
        return len(set(self.external) - {"x"}) + len(self.carried)


#: One product after the other, as in repeated powers: nothing between them.
PLAIN = Workload("plain", (), (("x", "y"),))

#: PageRank with damping, teleport and the residual's norm: x' = αy + β, Σ|x' − x|.
PAGERANK = Workload(
    "pagerank",
    (Elementwise(("y",), "next", 2), Elementwise(("next", "x"), "", 3)),
    (("x", "next"),),
)
