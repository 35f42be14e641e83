"""Find what is wrong with an installation: pure checks over facts that a command gathered.

Every check reports what it found and, unless all is well, what to do. A check whose facts could not
be gathered reports that: nothing counts as healthy only because it was not checked.
"""
