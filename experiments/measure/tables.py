"""A table of text, shown on a terminal or as a part of a report."""

from dataclasses import dataclass, field
from html import escape

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

WIDE = 1000  # columns: a table is as wide as it is, and nothing of it is cut


@dataclass
class Table:
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    title: str | None = None
    caption: str | None = None
    texts: int = 1  # so many columns from the left are words, the others numbers

    def add(self, *cells: str) -> None:
        assert len(cells) == len(self.columns)
        self.rows.append(list(cells))

    def show(self) -> None:
        shown = RichTable(box=box.SIMPLE, title=self.title, caption=self.caption)
        for number, column in enumerate(self.columns):
            shown.add_column(column, no_wrap=True,
                             justify="left" if number < self.texts else "right")
        for row in self.rows:
            shown.add_row(*row)
        Console(width=WIDE).print(shown)

    def html(self) -> str:
        kinds = ["text"] * self.texts + ["number"] * (len(self.columns) - self.texts)

        def head(kind, column):
            return f"<th class={kind}>{escape(column)}</th>"

        def cell(kind, column, text):  # on a narrow page it says of itself what it is
            return f'<td class={kind} data-label="{escape(column)}">{escape(text)}</td>'

        def line(cells):
            return f"<tr>{''.join(cells)}</tr>"

        title = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        below = f"<p class=note>{escape(self.caption)}</p>" if self.caption else ""
        body = "".join(line(map(cell, kinds, self.columns, row)) for row in self.rows)
        return (f"<div class=wide><table>{title}<thead>{line(map(head, kinds, self.columns))}</thead>"
                f"<tbody>{body}</tbody></table></div>{below}")
