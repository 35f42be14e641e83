"""Several pods that share one placeholder: who shares it, who gets which slot, what they agree on.

`decide` is the entry point, also for single pods. `members` describes one member and the
placeholders that concern it, `numbering` numbers slots and `seating` assigns them. `agree` combines
the members' decisions; `waiting` and `endings` are its two halves. `bridge.domain.lifecycle.table`
decides for each member on its own.
"""
