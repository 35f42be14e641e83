"""slurmdbd's records: ended jobs, accounts, users, associations, QOS and the rest."""
