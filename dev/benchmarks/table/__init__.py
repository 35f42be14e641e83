"""The table of `docs/performance.md`: the runs it is made of, their medians, and the page."""
