"""Write the table of kinds in `docs/workloads.md` from their registration: page in, page out.

Text outside the markers is kept (`make docs`).
"""

import sys

from bridge.domain.workloads import kinds
from bridge.domain.workloads.membership import KindRow

_MARK, _END = "<!-- kinds -->\n", "<!-- end -->"
_HEAD = KindRow("kind", "by default", "members, size")


def render(page: str) -> str:
    """Return the page with a fresh table."""
    rows = (_HEAD, KindRow("---", "---", "---"), *(kind.row for kind in kinds.ALL))
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    before, mark, rest = page.partition(_MARK)
    _, end, after = rest.partition(_END)
    return f"{before}{mark}{table}{end}{after}"


if __name__ == "__main__":
    sys.stdout.write(render(sys.stdin.read()))
