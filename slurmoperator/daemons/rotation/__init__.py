"""The key of a Slurm's daemons and its replacement while they run: `key_rings` reads and writes its steps, `rotating` takes the next one."""
