"""Generates `slurmclient/models.py` and `slurmclient/api/{operations,raw}.py`.

The input is Slurm's OpenAPI specification, one document for each version of the API. In `dev/`:

    for v in 42 43 44 45; do
        slurmrestd --generate-openapi-spec -s slurmctld,slurmdbd -d v0.0.$v > $v.json
    done
    python -m generate 42.json 43.json 44.json 45.json

`specification` merges the documents; `decisions` has what they do not say; `models`, `operations`
and `raw` write one file each, and `files` all of them.
"""
