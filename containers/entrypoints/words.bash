# What the entry points share.

fail() {
  echo "entrypoint: $1" >&2
  exit 64
}

# split TEXT…: set the array `words` to the words of all of it. Quotes and backslashes keep a word together as in a shell, but nothing
# is expanded: an option never runs a command.
split() {
  mapfile -d '' -t words < <(printf '%s' "$*" | xargs --no-run-if-empty printf '%s\0')
  wait "$!" || fail "expected options whose quotes match, found: $*"
}

# keep PROGRAM ARGUMENT…: run it beside the container's own program, again whenever it ends.
keep() {
  while :; do
    "$@" && code=0 || code=$?
    echo "entrypoint: $1 ended with exit code $code, and starts again" >&2
    ((code == 143)) || sleep 2 # SIGTERM: somebody wants it anew
  done &
}
