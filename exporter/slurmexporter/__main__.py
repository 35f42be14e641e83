"""Run with `python -m slurmexporter`."""

from slurmexporter.program.cli import main

main()
