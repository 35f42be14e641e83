# Everything that developers and CI run. Each target sets up what it needs; see CONTRIBUTING.md.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := agent bridge webhook extender controllers leader slurmjobs slurmoperator slurmcli slurmruntime dev client exporter deploy docs tests

.PHONY: venv demo demo-operator test test-fast coverage test-long test-real test-e2e test-e2e-sets test-releases check audit soak soak-jobs soak-devices soak-operator soak-hostile soak-long fuzz bench bench-table bench-scale figures fmt docs site manifests lock image slurm-images release release-notes clean

venv: .venv/ready

.venv/ready: requirements-dev.txt pyproject.toml client/pyproject.toml dev/pyproject.toml exporter/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "slurm-bridge needs Python 3.11 or newer; name one with 'make PYTHON=/path/to/python3.13 $(MAKECMDGOALS)'" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module is missing: 'apt install python3-venv' on Debian" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . --editable ./client --editable ./dev --editable ./exporter
	@touch $@

demo: venv
	$(BIN)/slurm-bridge demo

# A Slurm in pods from six lines, on real kubelets (docs/operator-quickstart.md); needs root.
demo-operator: venv
	$(BIN)/slurm-bridge demo-operator

# All tests, or one part: make test PYTEST_ARGS=tests/domain. Three at once suit two cores: most of a test is waiting.
WORKERS ?= 3
test: venv
	$(if $(PYTEST_ARGS),,$(BIN)/slurm-bridge sandbox fetch)
	$(BIN)/pytest $(or $(PYTEST_ARGS),--numprocesses $(WORKERS) --dist loadfile)

# What needs no server, in two minutes; without the tests marked slow, as histories and mutants are.
FAST := $(addprefix tests/,architecture slurmcli/checks slurmoperator/configuration slurmoperator/daemons slurmoperator/keys slurmoperator/nodesets slurmoperator/objects slurmoperator/rendering slurmoperator/workers containers controllers docs domain escrow extender slurmjobs/script slurmjobs/request slurmjobs/admission slurmjobs/identity slurmjobs/reconcile slurmjobs/lifecycle slurmjobs/sylabs leading process properties reconcile settings)
test-fast: venv
	$(BIN)/pytest -m "not slow and not long and not real_all" --numprocesses 2 --dist worksteal $(FAST) $(PYTEST_ARGS)

# How much of the decisions their own tests reach, branches too; fails below the share in pyproject.toml.
coverage: venv
	$(BIN)/coverage run -m pytest --quiet -p no:cacheprovider tests/domain $(PYTEST_ARGS)
	$(BIN)/coverage report

# Measure speed and cost on this machine, against kube-scheduler alone (docs/performance.md): make bench BENCH_ARGS="--pods 1000"
bench: venv
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

# Count lines, names, arrows and words (CONTRIBUTING.md): run it at the end of a larger change, and say what grew.
figures: venv
	$(BIN)/python -m benchmarks.house

# Fill the table of docs/performance.md: three runs of each column and size, kept in build/bench; called again, it goes on where it ended.
# Only the table of stored runs: make bench-table BENCH_TABLE_ARGS="build/bench/200-*.json"
bench-table: venv
	$(BIN)/python -m benchmarks.table --page docs/performance.md $(BENCH_TABLE_ARGS)

# Very many pods, nodes and jobs of strangers (docs/scale.md); an hour at full size. Smaller: make bench-scale BENCH_SCALE_ARGS="--waiting 200 --running 100 --nodes 50 --strangers 10000"
bench-scale: venv
	$(BIN)/python -m benchmarks.scale $(BENCH_SCALE_ARGS)

# Take each peer away for ten minutes, on real servers (docs/reliability.md). For a first impression: OUTAGE_S=60 make test-long
test-long: venv
	$(BIN)/pytest -m long --timeout 7200 $(PYTEST_ARGS)

# Everything on real kubelets with real containers (docs/development.md); needs root.
test-real: venv
	$(BIN)/pytest -m "not long" tests/realnodes $(PYTEST_ARGS)

# Kubernetes' own tests on real kubelets, plain and bridged (docs/kubernetes-tests.md, which it writes); needs root.
# A part of them: make test-e2e E2E_ARGS="--focus Deployment". In pieces: make test-e2e E2E_ARGS="--minutes 20 --ledger build/e2e.json", again and again
test-e2e: venv
	$(BIN)/python -m tests.upstream --page docs/kubernetes-tests.md $(E2E_ARGS)

# JobSet's and LeaderWorkerSet's own tests, the same way (docs/sets-tests.md, which it writes); needs root.
test-e2e-sets: venv
	$(BIN)/python -m tests.upstream.sets --page docs/sets-tests.md $(E2E_SETS_ARGS)

# The same tests on every release that README names, from the oldest to the newest (docs/releases.md, which it writes); half an hour.
# One of them: make test-releases RELEASES_ARGS="--only v0.0.43"
test-releases: venv
	$(BIN)/python -m tests.releases --page docs/releases.md $(RELEASES_ARGS)

# Inject random faults for an hour, on real servers (docs/reliability.md): make soak SOAK_ARGS="--minutes 5 --histories 20"
soak: venv
	$(BIN)/python -m tests.soak $(SOAK_ARGS)

# Random faults while SlurmJobs' real scripts run (docs/reliability.md); needs root, about half an hour.
soak-jobs: venv
	$(BIN)/python -m tests.soak.slurm_jobs $(SOAK_ARGS)

# Pods and native jobs that want devices of the same real nodes (docs/devices.md); needs root: make soak-devices SOAK_ARGS="--count 100"
# In pieces: make soak-devices SOAK_ARGS="--minutes 6", again and again
soak-devices: venv
	$(BIN)/python -m tests.soak.devices $(SOAK_ARGS)

# Random histories of a Slurm of pods (docs/reliability.md); needs root, goes on where it ended: make soak-operator SOAK_ARGS="--minutes 60"
soak-operator: venv
	$(BIN)/python -m tests.soak.operator $(SOAK_ARGS)

# Honest pods beside hostile tenants, connections, Slurm users and a hostile Slurm, for an hour (docs/reliability.md); needs root:
# make soak-hostile SOAK_ARGS="--minutes 10"; soak-long takes eight hours
soak-hostile: venv
	$(BIN)/python -m tests.soak.hostile $(SOAK_ARGS)

soak-long: venv
	$(BIN)/python -m tests.soak.hostile --minutes 480 $(SOAK_ARGS)

# Look for inputs that break a reader of others' text, for an hour (docs/development.md): make fuzz FUZZ_ARGS="--minutes 5"
fuzz: venv
	$(BIN)/python -m tests.fuzz $(FUZZ_ARGS)

check: venv
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --quiet tests/architecture/test_names.py tests/architecture/test_words.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -m tests.architecture.commits

# The locked Python packages against a file of advisories, which no package registry has (docs/releasing.md): make audit DATABASE=all.zip
audit: venv
	$(BIN)/python -m audit $(DATABASE)

fmt: venv
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

# Regenerate pages and files that are made from code; tests fail while they differ.
docs: venv
	$(BIN)/python -m docs.generate.settings > docs/settings.md
	$(BIN)/python -m docs.generate.lifecycle > docs/lifecycle.md
	$(BIN)/python -m docs.generate.nodes < docs/nodes.md > docs/nodes.md.new && mv docs/nodes.md.new docs/nodes.md
	$(BIN)/python -m docs.generate.workloads < docs/workloads.md > docs/workloads.md.new && mv docs/workloads.md.new docs/workloads.md
	$(BIN)/python -m docs.generate.attacks < docs/security.md > docs/security.md.new && mv docs/security.md.new docs/security.md
	$(BIN)/python -m docs.generate.stolen < docs/security.md > docs/security.md.new && mv docs/security.md.new docs/security.md
	$(BIN)/python -m docs.generate.safeguards < docs/security.md > docs/security.md.new && mv docs/security.md.new docs/security.md
	$(BIN)/python -m docs.generate.bounds < docs/security.md > docs/security.md.new && mv docs/security.md.new docs/security.md
	$(BIN)/python -m docs.generate.annotations < docs/annotations.md > docs/annotations.md.new && mv docs/annotations.md.new docs/annotations.md
	$(BIN)/python -m docs.generate.reasons > docs/reasons.md
	$(BIN)/python -m docs.generate.caps > docs/caps.md
	$(BIN)/python -m docs.generate.operator < docs/operator.md > docs/operator.md.new && mv docs/operator.md.new docs/operator.md
	$(BIN)/python -m docs.generate.slurmjob_options > docs/slurmjob-options.md
	$(BIN)/python -m docs.generate.nodeset_lifecycle > docs/nodeset-lifecycle.md
	$(BIN)/python -m docs.generate.slurmjob_lifecycle > docs/slurmjob-lifecycle.md
	$(BIN)/python -m docs.generate.glossary > docs/glossary.md
	$(BIN)/python -m docs.generate.metrics > docs/metrics.md
	$(BIN)/python -m docs.generate.exporter > docs/exporter-metrics.md
	$(BIN)/python -m docs.generate.dashboard
	$(BIN)/python -m docs.generate.exporter_dashboards
	$(BIN)/python -m docs.generate.schema

# Build the documentation as a site in ./site; preview it while you write: make site SITE=serve
SITE := build --strict
site: venv
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(SITE)

# Move the files of docs/news into CHANGELOG.md as a release; only look: make release-notes VERSION=0.3.0 NOTES_ARGS=--draft
release-notes: venv
	@test -n "$(VERSION)" || { echo "name the release: make release-notes VERSION=0.3.0" >&2; exit 1; }
	$(BIN)/towncrier build --yes --version $(VERSION) $(NOTES_ARGS)

# Regenerate the chart's list of workload kinds, the definition of SlurmJob and the plain manifests for clusters without Helm; tests fail while they differ.
manifests: venv
	$(BIN)/python deploy/manifests.py

# Rewrite the locks, with hashes and without an index address (needs uv on PATH).
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate
lock:
	$(LOCK) pyproject.toml -o requirements.txt
	$(LOCK) pyproject.toml dev/pyproject.toml --group audit --group build --group bench --group docs --group lint --group test -c requirements.txt -o requirements-dev.txt
	$(LOCK) --group build -c requirements-dev.txt -o requirements-build.txt

# Our images from the Dockerfile into ./build, without Docker; needs root. On another base: make image BASE_IMAGE=docker.io/library/python:3.13-slim@sha256:…
image: venv
	$(BIN)/python -m sandbox.image build $(if $(BASE_IMAGE),--base-image $(BASE_IMAGE))

# The images of Slurm for slurm-operator into ./build, without Docker (docs/containers.md); needs root: make slurm-images SLURM_IMAGES_ARGS="--only slurmctld"
slurm-images: venv
	$(BIN)/python -m sandbox.image.slurm build $(SLURM_IMAGES_ARGS)

# A release into ./build/release: images, what they are made of, how they came about, charts, checksums (docs/releasing.md); needs root.
# Sign it with an SSH key: make release RELEASE_ARGS="--signing-key ~/.ssh/id_ed25519 --base-image …@sha256:…"
release: venv
	$(BIN)/python -m sandbox.image.release build/release $(RELEASE_ARGS)

clean:
	rm -rf build .venv .coverage site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
