"""The transportation problem, solved exactly: whole units from sources to sinks at the least total cost.

Sources are served one after the other, each along the cheapest augmenting path (successive shortest paths; Ahuja,
Magnanti and Orlin, Network Flows, 1993, section 9.7). Sinks that are full pass units on: the price of making room in
sink j by sending one of its units to sink k is kept in a table [sinks, sinks], so that a path is found among the
sinks alone. Hence the smaller side of the problem should be the sinks.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

_FINENESS = 2**48
"""Paths are compared by costs in whole numbers, the largest cost being this many: sums of rounded numbers can make a
round trip look profitable, and then no path is the cheapest. What is lost is 2e-15 of the largest cost a unit."""
_NEVER = 2**61


def cheapest_transport(cost: np.ndarray, supply: np.ndarray, demand: np.ndarray) -> float:
    """Least total cost of moving all units.

    Args:
        cost: [n, m], of moving one unit from source i to sink j; not negative.
        supply, demand: [n] and [m], whole numbers above zero with equal sums.
    """
    if cost.shape[1] > cost.shape[0]:
        cost, supply, demand = cost.T, demand, supply
    plan = _Plan(cost, demand)
    for source, units in enumerate(supply):
        plan.serve(source, int(units))
    return float((plan.flow * cost).sum())


class _Plan:
    """An optimal plan for the sources served so far.

    Args (attributes):
        flow: [n, m] units.
        room: [m] units that each sink still takes.
    """

    def __init__(self, cost: np.ndarray, demand: np.ndarray) -> None:
        sinks = cost.shape[1]
        self.flow = np.zeros(cost.shape, np.int64)
        self.room = np.array(demand, np.int64)
        self._cost = np.rint(cost * (_FINENESS / (cost.max() or 1.0))).astype(np.int64)
        self._price = np.full((sinks, sinks), _NEVER)  # of passing one unit on from sink j to sink k
        self._mover = np.zeros((sinks, sinks), np.int64)  # the source whose unit that would be

    def serve(self, source: int, units: int) -> None:
        """Send a source's units, cheapest path first."""
        while units:
            sinks = self._path(source)
            movers = [source, *(int(self._mover[j, k]) for j, k in pairwise(sinks))]
            passed = [int(self.flow[mover, j]) for mover, j in zip(movers[1:], sinks, strict=False)]
            moved = min([units, int(self.room[sinks[-1]]), *passed])
            for hop, (mover, sink) in enumerate(zip(movers, sinks, strict=True)):
                self.flow[mover, sink] += moved
                if hop:
                    self.flow[mover, sinks[hop - 1]] -= moved
            self.room[sinks[-1]] -= moved
            units -= moved
            for sink in sinks:
                self._reprice(sink)

    def _path(self, source: int) -> list[int]:
        """Sinks along the cheapest way from a source to a sink with room, by Bellman and Ford's relaxation."""
        distance = self._cost[source].copy()
        before = np.full(len(distance), -1)
        while True:
            through = distance[:, None] + self._price
            best = through.argmin(axis=0)
            shorter = through[best, np.arange(len(best))]
            gains = shorter < distance
            if not gains.any():
                break
            distance[gains], before[gains] = shorter[gains], best[gains]
        path = [int(np.argmin(np.where(self.room > 0, distance, _NEVER)))]
        while before[path[0]] >= 0:
            path.insert(0, int(before[path[0]]))
        return path

    def _reprice(self, sink: int) -> None:
        """Find for every other sink which of this sink's units is cheapest to pass on."""
        holders = np.flatnonzero(self.flow[:, sink])
        extra = self._cost[holders] - self._cost[holders, sink][:, None]
        cheapest = extra.argmin(axis=0)
        self._price[sink] = extra[cheapest, np.arange(len(cheapest))]
        self._mover[sink] = holders[cheapest]
        self._price[sink, sink] = _NEVER
