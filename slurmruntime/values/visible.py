"""Text of others that must not act: on a terminal, in a log, in a condition or an Event.

Whoever names a job, a pod or a partition chooses bytes that an administrator's terminal later shows. Control characters move the
cursor or change a title, and the marks of bidirectional text let a line read as another one (Unicode TR 36, CVE-2021-42574).
"""

import re
from typing import Final

_ACTING: Final = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Control characters but for line feeds, separators of lines and paragraphs, and marks that change the writing direction."""


def visible(text: str) -> str:
    """Return the text with each such character as the escape that JSON has for it; line feeds stay."""
    if text.isprintable():
        return text
    return _ACTING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def visible_line(text: str) -> str:
    """Return the same for a text that must stay on one line."""
    return visible(text).replace("\n", "\\n")
