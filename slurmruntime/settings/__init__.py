"""Where settings are read from, their types, and the sections that every program has."""
