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
    return f"{before}{mark}{overrides.reference()}{end}{after}"


if __name__ == "__main__":
    sys.stdout.write(render(sys.stdin.read()))
