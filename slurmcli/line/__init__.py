"""The command line: how a command declares its options, which of them commands share, and how plain words are read."""
