"""The common parts of the figures of FlashGraph, HUS-Graph and MaiterStore."""


from experiments.figures import drawing
from experiments.measure import summary
from experiments.measure.summary import median_min_max
from experiments.workloads.stored.workload import compute_seconds


def figures_of_paper(figure, paper: str):
    """`figure`: the class of figures.py. Returns a function that makes a figure of this paper, with cases
    from a Plan of this module."""
    def one(number, title, published, cases, draw):
        return figure(number, title, published, lambda plan: cases(plan.stored()), draw, paper)

    return one


# --- what is drawn of samples ---

def ratio(of: list[dict], to: list[dict]) -> tuple | None:
    """The ratio of computing times, as drawing.bars() takes it."""
    return summary.bar_value(summary.ratio(of, to, compute_seconds)) if of and to else None


def variation_of(one: dict) -> str:
    """The variation of its algorithm that a case measures."""
    return one["algorithm"].partition(", ")[2]


def variations(found: list[dict]) -> dict[str, list[dict]]:
    """The cases of each algorithm, in the order of what is tried."""
    by_algorithm = {}
    for one in summary.cases(found):
        by_algorithm.setdefault(one["algorithm"].split(", ")[0], []).append(one)
    return by_algorithm


def bars_by_variant(axes, found: list[dict], value, label: str) -> None:
    """A group for each algorithm, a bar for each variant; value(sample) on a logarithmic axis."""
    cases = summary.cases(found)
    drawing.bars(axes, [one["algorithm"] for one in cases], {
        variant: [median_min_max([value(sample) for sample in summary.select(found, variant=variant, **one)])
              for one in cases] for variant in summary.variants(found)})
    axes.set(ylabel=label, yscale="log")


def draw_by_variant(found: list[dict], value, label: str):
    figure, (axes,) = drawing.panels(1)
    bars_by_variant(axes, found, value, label)
    drawing.legend(axes)
    return figure
