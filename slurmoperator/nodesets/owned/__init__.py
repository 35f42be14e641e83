"""Objects that NodeSets have besides workers: budgets, configuration, volumes, and revisions."""
