"""Jobs of Slurm's other users on a machine that pods share."""

from tests.integration.machines import Machine


def native(hybrid: Machine, cpus: int, script: str, *asked: str) -> str:
    """A batch job that a slurmd starts, as Slurm's other users have them; its id."""
    size = (f"--ntasks={cpus}", "--mem=16", f"--nodelist={hybrid.name}")
    quiet = ("--export=NONE", "--output=/dev/null", "--chdir=/tmp")
    return hybrid.slurm.run(
        "sbatch", "--parsable", *size, *quiet, *asked, f"--wrap={script}"
    ).strip()


def state(hybrid: Machine, job_id: str) -> str:
    return hybrid.slurm.run(
        "squeue", "--noheader", "--states=all", "-o", "%T", "-j", job_id
    ).strip()


def reason(hybrid: Machine, job_id: str) -> str:
    return hybrid.slurm.run("squeue", "--noheader", "-o", "%r", "-j", job_id)
