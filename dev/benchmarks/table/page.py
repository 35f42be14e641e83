"""Where the table stands in a page. Pure."""

_BEGIN, _END = "<!-- table: make bench-table -->", "<!-- end -->"


def with_table(page: str, table: str) -> str:
    """Return the page with this table in place of the one it has.

    Raises:
        ValueError: it has no place for one.
    """
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(
            f"the page has no lines {_BEGIN} and {_END}, between which the table stands"
        )
    return f"{before}{begin}\n\n{table.strip()}\n\n{end}{after}"
