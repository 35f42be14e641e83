"""slurmdbd's records: ended jobs, accounts, users, associations, QOS and the rest.

`database` names all collections. `records` can be saved and deleted, `accounts` adds accounts and
users with their associations, `jobs` reads the accounting of jobs.
"""
