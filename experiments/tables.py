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
        def line(tag, cells):
            kinds = ["text"] * self.texts + ["number"] * (len(cells) - self.texts)
            return "<tr>" + "".join(f"<{tag} class={kind}>{escape(cell)}</{tag}>"
                                    for kind, cell in zip(kinds, cells)) + "</tr>"

        title = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        below = f"<p class=note>{escape(self.caption)}</p>" if self.caption else ""
        body = "".join(line("td", row) for row in self.rows)
        return (f"<div class=wide><table>{title}<thead>{line('th', self.columns)}</thead>"
                f"<tbody>{body}</tbody></table></div>{below}")
