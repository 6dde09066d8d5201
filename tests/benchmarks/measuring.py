"""Measure and print: CPU time in interleaved rounds, medians, and ratios to our own median."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

ROUNDS = 7


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*cells: object) -> None:
    row(*cells)
    row(*["---"] * len(cells))


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """Return the CPU seconds of one call. CPU time of the process depends less on what else the machine does."""
    began = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - began) / times


def compared(works: Mapping[str, Callable[[], object]], rounds: int = ROUNDS, least: float = 0.005) -> dict[str, float]:
    """Return the median CPU seconds of one call of each. Each round measures all of them, each for at least `least`."""
    times = {name: max(1, round(least / max(seconds(work), 1e-7))) for name, work in works.items()}
    samples: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            samples[name].append(seconds(work, times[name]))
    return {name: median(sample) for name, sample in samples.items()}


def text_of(seconds: float) -> str:
    """Return a duration as text, with three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def beside(result: Mapping[str, float], ours: str) -> list[str]:
    """Return each duration as text, with its ratio to ours: `(4.0x)`."""
    cells = [text_of(result[ours])]
    for name, duration in result.items():
        if name != ours:
            cells.append(f"{text_of(duration)} ({duration / result[ours]:.1f}x)")
    return cells
