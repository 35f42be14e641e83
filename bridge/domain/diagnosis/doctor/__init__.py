"""What is wrong with an installation: pure checks over facts that a command gathered.

Every check says what it found and, unless all is well, what to do. A check whose facts could not be gathered says so:
nothing is taken for well because nobody looked.
"""
