"""Several pods and one placeholder: who shares it, who sits where, and what the members agree on.

`agree` brings the members' decisions together; `waiting` and `endings` are its two halves. `members` describes one
member, `seating` assigns slots. Each member on its own is decided for by `bridge.domain.lifecycle`.
"""
