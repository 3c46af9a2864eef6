"""What was found about vectors, as a table of text and a few sentences."""

from __future__ import annotations

from ..evaluation import FOLDS, UNSEEN, Adaptation, PairedTest, WayResult
from .refusals import listed

SHORT = {"precision@1": "P@1", "precision@10": "P@10", "recall@100": "R@100", "nDCG@10": "nDCG@10", "MRR": "MRR"}
NEW_CLASSES = "Classes that no training row has"


def grid_of(found: Adaptation) -> list[dict[str, str]]:
    """Return a line for every way: its bytes, its scores in percent, and the difference to the raw vectors."""
    unseen = UNSEEN if UNSEEN in found.n_queries and found.part != UNSEEN else None
    lines = []
    for one in found.results:
        scores, is_raw = one.scores[found.part], one is found.raw
        line = {"vectors": one.way.name, "bytes": f"{one.way.bytes:,}"}
        line |= {short: f"{100 * scores[name]:.1f}" for name, short in SHORT.items()}
        line[f"{SHORT[found.score]} - raw"] = "" if is_raw else difference(one.tests[found.part])
        if unseen:
            line["unseen - raw"] = "" if is_raw else difference(one.tests[unseen])
        line |= {
            "fit, s": f"{one.seconds:.1f}" if one.seconds else "",
            "verdict": one.status if one.way.is_adapted else "",
        }
        lines.append(line)
    return lines


def difference(test: PairedTest) -> str:
    """Return a difference in points with its 95 % interval."""
    low, high = test.interval()
    return f"{100 * test.difference:+.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def verdict_of(found: Adaptation, chosen: WayResult) -> list[str]:
    """Return sentences: what to take, how it was judged, and what to mind."""
    raw, score = found.raw, found.score
    lines = [_advice(found, chosen)]
    if UNSEEN in chosen.tests and chosen is not raw:
        lines.append(
            f"{NEW_CLASSES}: {100 * chosen.scores[UNSEEN][score]:.1f} against "
            f"{100 * raw.scores[UNSEEN][score]:.1f} raw, {difference(chosen.tests[UNSEEN])} points."
        )
    queries = " and ".join(f"{count:,} held-out queries of {part}" for part, count in found.n_queries.items())
    queries = queries.replace(" queries of queries", " queries")
    lines.append(
        f"Judged by {queries}, in {FOLDS} splits; {score} decides. Intervals hold 95 %, corrected for the training "
        'rows that splits share; "better" holds for all adapters together, which are tested from long to short.'
    )
    settings = ", ".join(f"{name} {value:g}" for name, value in found.settings.items())
    lines.append(f"Settings of the adapters, chosen inside the training rows: {settings}.")
    if found.harmful:
        lines.append(
            f"Better on seen classes, probably worse on new ones: {listed(found.harmful, 4)} (--take NAME takes one)."
        )
    return lines


def _advice(found: Adaptation, chosen: WayResult) -> str:
    raw = found.raw
    if chosen is raw:
        return f"Keep the raw vectors: no adapter is shown to be better in {found.score}."
    before, after = (one.scores[found.part][found.score] for one in (raw, chosen))
    times = raw.way.bytes / chosen.way.bytes
    size = f"{times:.3g} times smaller" if times > 1 else "of the same size"
    text = (
        f"Take {chosen.way.name}: {found.score} {100 * after:.1f} against {100 * before:.1f} raw "
        f"({difference(chosen.tests[found.part])} points), {chosen.way.bytes:,} bytes a vector in place of "
        f"{raw.way.bytes:,}, {size}."
    )
    return text if chosen.status == "better" else f"{text} It is not shown to be better than raw."
