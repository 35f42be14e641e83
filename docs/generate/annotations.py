"""Write the tables of fields in `docs/annotations.md` from the table that parses them: page in, page out.

Text outside the markers is kept (`make docs`).
"""

import sys

from bridge.domain.request import overrides

_MARK, _END = "<!-- fields -->\n", "<!-- end -->"


def render(page: str) -> str:
    """Return the page with fresh tables."""
    before, mark, rest = page.partition(_MARK)
    _, end, after = rest.partition(_END)
    return f"{before}{mark}{tables()}{end}{after}"


def tables() -> str:
    """Return the tables of the fields, and of those that are refused."""
    lines = [
        "| annotation | meaning | accepted | example |",
        "| --- | --- | --- | --- |",
        *(f"| `{f.name}` | {f.meaning} | {f.accepted} | `{f.example}` |" for f in overrides.FIELDS),
        "",
        "These are refused:",
        "",
        "| annotation | why |",
        "| --- | --- |",
        *(f"| `{name}` | {why} |" for name, why in overrides.REFUSED.items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render(sys.stdin.read()))
