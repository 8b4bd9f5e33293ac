"""How figures look: one style, as SVG that is readable on light and on dark paper."""

import io
import re
from collections.abc import Sequence

# Stands for the colour of the text around the figure; no other line has it.
INK = "#010203"
WIDTH, HEIGHT = 6.4, 3.6  # inches of one panel
NAME_SHORT = 24
COLOURS = ["#7f8c9b", "#2f7fd6", "#e0832f", "#3aa35b", "#b65fc9", "#c9a227"]
STYLE = {"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10,
         "text.color": INK, "axes.edgecolor": INK, "axes.labelcolor": INK,
         "xtick.color": INK, "ytick.color": INK, "axes.facecolor": "none",
         "figure.facecolor": "none", "legend.frameon": False, "axes.grid": True,
         "grid.color": "#80808055", "axes.axisbelow": True, "axes.spines.top": False,
         "axes.spines.right": False}
ALONE = ("<style>svg { color: #1b1f24; background: #fff; }"
         "@media (prefers-color-scheme: dark) { svg { color: #dfe3e8; background: #16191d; } }"
         "</style>")


def pyplot():
    """matplotlib's pyplot in our style. It is imported only to draw: that takes half a second."""
    import matplotlib

    matplotlib.use("svg")  # needs no display
    matplotlib.rcParams.update(STYLE)
    from matplotlib import pyplot

    return pyplot


def panels(count: int):
    """The figure and its axes, one below the other."""
    figure, axes = pyplot().subplots(count, 1, figsize=(WIDTH, HEIGHT * count), squeeze=False,
                                   layout="constrained")
    return figure, list(axes[:, 0])


def bars(axes, groups: list[str], series: dict[str, list[tuple]]) -> None:
    """For each group a bar of every series: (value, least, most), or None."""
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        there = [(i, value) for i, value in enumerate(values) if value is not None]
        places = [i + (number - (len(series) - 1) / 2) * width for i, _ in there]
        middle = [value[0] for _, value in there]
        # The median of a ratio may lie outside of the rounds' own ratios.
        spread = [[max(0, value[0] - value[1]) for _, value in there],
                  [max(0, value[2] - value[0]) for _, value in there]]
        axes.bar(places, middle, width * 0.92, label=name, yerr=spread, capsize=2,
                 color=COLOURS[number % len(COLOURS)], ecolor=INK)
    axes.set_xticks(range(len(groups)), groups)
    axes.grid(axis="x", visible=False)


def long_bars(groups: list[str], series: dict[str, list[tuple]], axis: str):
    """Horizontal bars for long names, with a line at 1."""
    height = 0.9 + 0.22 * len(groups) * (len(series) + 0.6)
    figure, axes = pyplot().subplots(figsize=(WIDTH, height), layout="constrained")
    thick = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        there = [(i, value) for i, value in enumerate(values) if value is not None]
        places = [i + (number - (len(series) - 1) / 2) * thick for i, _ in there]
        middle = [value[0] for _, value in there]
        spread = [[max(0, value[0] - value[1]) for _, value in there],
                  [max(0, value[2] - value[0]) for _, value in there]]
        shown = axes.barh(places, middle, thick * 0.9, label=name, xerr=spread, ecolor=INK,
                          color=COLOURS[(number + 1) % len(COLOURS)], error_kw={"linewidth": 0.8})
        axes.bar_label(shown, fmt="%.2f", label_type="center", fontsize=8, color="#fff")
    axes.axvline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(groups)), groups)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(xlabel=axis, xlim=(0, None))
    legend(axes)
    return figure


def line(axes, number: int, name: str, places: Sequence[float], values: list[tuple], **style):
    """With the range of each value: (value, least, most), or None."""
    places = [place for place, value in zip(places, values, strict=True) if value is not None]
    values = [value for value in values if value is not None]
    colour = COLOURS[number % len(COLOURS)]
    axes.fill_between(places, [value[1] for value in values], [value[2] for value in values],
                      color=colour, alpha=0.2, linewidth=0)
    axes.plot(places, [value[0] for value in values], marker="o", color=colour, label=name,
              **style)


def legend(axes) -> None:
    """Above what is shown; in columns, if the names are short."""
    names = axes.get_legend_handles_labels()[1]
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), fontsize=8,
                ncols=3 if max(map(len, names)) <= NAME_SHORT else 1)


def svg(figure, salt: str, alone: bool = False) -> str:
    """The text of the SVG; the same figure gives the same text. Several stand in one page, so
    their ids differ by the salt. Alone, it brings its own colours of paper and ink."""
    pyplot().rcParams["svg.hashsalt"] = salt
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    pyplot().close(figure)
    text = out.getvalue()
    text = text[text.index("<svg"):].replace(INK, "currentColor")
    text = re.sub(r'(id="|href="#|url\(#)', rf"\1{salt}-", text)
    return re.sub(r"(<svg[^>]*>)", r"\1" + ALONE, text, count=1) if alone else text
