"""Several pods and one placeholder: who shares it, who sits where, and what the members agree on.

`decide` is the way in, for single pods too. `members` describes one member and the placeholders that concern it,
`seating` assigns slots, `agree` brings the members' decisions together; `waiting` and `endings` are its two halves. Each
member on its own is decided for by `bridge.domain.lifecycle.table`.
"""
