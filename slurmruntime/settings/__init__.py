"""Sources of settings, their types, and the sections that every program has."""
