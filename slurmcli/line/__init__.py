"""The command line: declaring options, the options that commands share, and parsing plain words."""
