"""Proofs about the control of the matrix unit."""

from vitruvian.flows.formal.harness import Harness, Tracker
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.cube.control import SlotQueue

__all__ = ["PROOFS"]


def _slot_queue(h: Harness) -> None:
    queue = h.add(SlotQueue(depth=4), "queue")
    track = Tracker(
        h,
        entered=queue.push,
        left=queue.pop,
        offered=queue.any,
        expected=queue.slot,
        actual=queue.head,
        most=4,
    )
    h.assume(~queue.pop | queue.any)
    h.assume(~queue.push | (track.level != 4))
    h.rule("any", queue.any == (track.level != 0))


PROOFS = (
    Proof(
        name="cube.queue",
        component="SlotQueue, 4 slots",
        claim="Every slot number leaves once, and in the order of arrival.",
        build=_slot_queue,
        mutations=(
            Mutation(
                name="a push goes behind the place that a pop frees",
                owner=SlotQueue,
                function="elaborate",
                old="left.eq(level - self.pop)",
                new="left.eq(level)",
            ),
        ),
    ),
)
