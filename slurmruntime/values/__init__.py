"""Plain values and rules that everything uses: ids, names, faults, quantities."""
