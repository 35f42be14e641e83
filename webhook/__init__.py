"""The admission webhook: hands the pods of bridged namespaces to Slurm at CREATE."""
