"""What NodeSets own besides their workers: budgets, configuration, and the templates they have had."""
