"""What people ask: `slurm-bridge why`, `queue`, `nodes` …, also as `kubectl slurm …`. Reads only."""
