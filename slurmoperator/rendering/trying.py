"""The scripts that try Slurm's files with the image's own daemon, install them, and report the result."""

from typing import Final

from slurmoperator.configuration.slurm_conf import ETC

WANTED: Final = "/etc/slurm-wanted"
"""Mount path of the desired files."""
PROVEN: Final = "/etc/slurm-proven"
"""Mount path of the files that the daemon last served with."""
KEYS: Final = "/etc/slurm-keys"
TRIAL_S: Final = 80
"""Longer than the minute for which Slurm waits for a missing file."""
BROUGHT_S: Final = 150
"""How long a kubelet may take to deliver files: it syncs about once a minute and caches for as long."""
STARTS_S: Final = 60
"""How long slurmctld may take until it serves; the same as its startup probe."""
MOST_NODES: Final = 1000
"""Maximum number of node lines to try; the files together have at most 1 MB."""
MOST_UNFIT: Final = 20
"""Maximum number of refused node lines to report; later ones count as good until these are fixed."""
ANSWERS_S: Final = 300
"""How long a command may wait for slurmctld's answer: each standby whose name does not resolve takes half a minute, and there are up to
nine."""
AGAIN_S: Final = 60
"""Retry interval for refused files: some refusals resolve themselves, such as while slurmdbd is not up yet."""

ENVIRONMENT: Final = {
    "ETC": ETC,
    "WANTED": WANTED,
    "PROVEN": PROVEN,
    "KEYS": KEYS,
    "RUN": "/run/configuration",
}
"""The paths; `ETC` is what the daemon and the commands beside it read."""
LAST_WORDS: Final = {"LAST_WORDS": "/dev/termination-log"}
"""The termination message; Kubernetes keeps 4 KiB."""
WRITE_FILE: Final = ".written"
"""The file beside them that names the write. It does not count for their digest: the same files may be written again after
others, and a verdict on the first write says nothing about the second."""
LOG_PREFIX: Final = "configuration"
"""First word of each log line. It is followed by `taken` or `refused`, the files' digest, the write (`-` if it has no name) and
Slurm's message; or, about the nodes that workers will register, by `unfit`, the digest of the line and so on for each that
slurmctld refuses, and finally by `judged` and the files' digest and write."""

_COMMON: Final = rf"""
set -u
export LC_ALL=C
written=
shopt -s nullglob
trial=$RUN/trial NOBODY="NodeAddr=localhost Port=1"
mkdir -p "$RUN"

# files SET: the names of its files, one a line. What begins with two dots is the kubelet's.
files() {{ (cd "$1" && for each in [!.]* .[!.]*; do [ "$each" = {WRITE_FILE} ] || printf '%s\n' "$each"; done) | sort; }}
digest() {{ (cd "$1" && files . | while IFS= read -r each; do sha256sum -- "$each"; done | sha256sum | cut -c 1-64); }}
noted() {{ cat "$RUN/$1" 2> /dev/null; }}
note() {{ printf '%s' "$2" > "$RUN/$1"; }}
now() {{ printf '%(%s)T' -1; }}
link_keys() {{ local each; for each in "$KEYS"/[!.]*; do ln -sf "$each" "$1/"; done; }}
tell() {{ printf '{LOG_PREFIX} %s %s %s %s\n' "$1" "$2" "${{written:--}}" "${{3:-}}"; }}

# said FILE KEY: the value of a parameter.
said() {{ sed -nE "s/^(.*[[:space:]])?$2=(\"([^\"]*)\"|([^[:space:]]*)).*/\3\4/Ip" "$1" | tail -n 1; }}

# without KEY|KEY...: leave these parameters out, and each line where it is: Slurm tells the numbers of lines.
without() {{ sed -E "s/(^|[[:space:]])($1)[[:space:]]*[-+*\/]?=[[:space:]]*(\"[^\"]*\"|[^[:space:]]*)/\1/Ig"; }}

host() {{ local name; name=$(cat /proc/sys/kernel/hostname); printf '%s' "${{name%%.*}}"; }}

# start SET [LINES]: have the daemon start with these files, and with these lines besides. 0: it would serve; 1: it does not; 2: it could
# not be run. `words` is what it said.
start() {{
  local attempt pid code late deadline
  for attempt in 1 2 3; do
    rm -rf "$trial"
    mkdir -p "$trial/etc" "$trial/state" || {{ words="nothing can be written in $RUN"; return 2; }}
    ln -s "$1"/[!.]* "$trial/etc/"
    link_keys "$trial/etc"
    rm -f "$trial/etc/$FILE"
    cat "$1/$FILE" ${{2:+"$2"}} > "$trial/conf"
    neutral "$trial/conf" $((20000 + RANDOM % 12000)) > "$trial/etc/$FILE"
    : > "$trial/out"
    SLURM_CONF=$trial/etc/slurm.conf "$DAEMON" -D -v > "$trial/out" 2>&1 < /dev/null &
    pid=$! late= deadline=$(($(now) + {TRIAL_S}))
    while kill -0 "$pid" 2> /dev/null && ! grep -qE "$SERVES" "$trial/out"; do
      [ "$(now)" -lt "$deadline" ] || {{ late=yes; break; }}
      sleep 0.1
    done
    kill -KILL "$pid" 2> /dev/null
    wait "$pid" 2> /dev/null
    code=$?
    ! grep -qE "$SERVES" "$trial/out" || return 0
    words=$(complaint)
    if [ -n "$late" ]; then
      words="it did not serve within {TRIAL_S} s: $words"
      return 1
    fi
    case $code in 126 | 127 | 137) words="$DAEMON ended with $code: $words"; return 2 ;; esac
    grep -q 'Address already in use' "$trial/out" || return 1
  done
  return 2
}}

# complaint: what the daemon said last of what is wrong, on one line.
complaint() {{
  sed -nE 's/^.*\b(error|fatal): /\1: /p' "$trial/out" | grep -vE 'specified more than once|default partition not set|High latency for 1000 calls' |
    awk '!seen[$0]++' | tail -n 5 | sed "s|$trial/etc/|$ETC/|g; s/ $NOBODY//" | tr -c '[:print:]\n' ' ' | paste -s -d '~' - |
    sed -E 's/~/; /g; s/; fatal: (Unable to process configuration file|Could not open.read.parse .*)$//' | cut -c 1-1000
}}

# try SET: 0: the daemon takes it; 1: it refuses; 2: that cannot be said, as it starts with no files here.
try() {{
  local found refusal
  start "$1"
  found=$?
  if [ "$found" = 1 ]; then
    refusal=$words
    rm -rf "$RUN/least" && mkdir -p "$RUN/least"
    least "$1/$FILE" > "$RUN/least/$FILE"
    start "$RUN/least" || {{ found=2 refusal="$DAEMON starts with no files here: $words"; }}
    words=$refusal
  fi
  rm -rf "$trial"
  return "$found"
}}

# take VOLUME SET: copy the files that the kubelet brought last. It may exchange them at any time, and the files that are tried, put and
# reported have to be the same ones. `brought` names them.
take() {{
  rm -rf "$2"
  # Of a folder that was exchanged meanwhile, some files may be gone.
  until brought=$(readlink "$1/..data") && cp -R "$1/$brought" "$2" && [ "$(readlink "$1/..data")" = "$brought" ]; do
    rm -rf "$2"
    sleep 1 & wait $!
  done
}}

# put SET: have its files where the daemon reads them, and none that were put there before.
put() {{
  local each
  note putting "$1"
  [ ! -e "$RUN/names" ] || while IFS= read -r each; do [ -e "$1/$each" ] || rm -f -- "$ETC/$each"; done < "$RUN/names"
  files "$1" > "$RUN/names"
  while IFS= read -r each; do
    cp -- "$1/$each" "$ETC/.putting" && chmod "$MODE" "$ETC/.putting" && mv -f -- "$ETC/.putting" "$ETC/$each"
  done < "$RUN/names"
  link_keys "$ETC"
  # Others may have come between these files and the last time that slurmctld served with them.
  note served ""
  note put "$(digest "$1")"
  note put-at "$(now)"
  note putting ""
}}

# has_proven: are there other files than the wanted ones that the daemon has served with? A copy of them is in $RUN/proven.
has_proven() {{
  [ -e "$PROVEN/$FILE" ] || return 1
  take "$PROVEN" "$RUN/proven"
  [ "$(digest "$RUN/proven")" != "$wanted" ]
}}
"""

SCRIPT: Final = rf"""{_COMMON}
DAEMON=slurmctld FILE=slurm.conf MODE=550 SERVES="Running as primary controller"
trap 'exit 0' TERM

# serves: does a slurmctld answer, and with the slurm.conf that was put? One whose configuration has no hash may have any.
serves() {{
  local said
  said=$(timeout {ANSWERS_S} scontrol show config 2> /dev/null) && ! grep -q '^HASH_VAL.*Different' <<< "$said"
}}
# is_lost CODE WORDS: was there no answer of slurmctld's?
is_lost() {{
  [ "$1" = 124 ] || grep -qiE 'timed out|unable to contact|connect|transmitted|message received' <<< "$2"
}}

# neutral FILE PORT: a slurm.conf with which slurmctld neither is reached nor reaches anybody, keeps nothing, and runs nobody's program.
neutral() {{
  local dropped='SlurmctldHost|SlurmctldPort|SlurmctldAddr|ControlMachine|ControlAddr|BackupController|BackupAddr|StateSaveLocation'
  dropped+='|SlurmctldPidFile|SlurmctldLogFile|SlurmSchedLogFile|SlurmctldPrimaryOnProg|SlurmctldPrimaryOffProg'
  dropped+='|SuspendProgram|ResumeProgram|ResumeFailProgram|MailProg|AuthInfo|CommunicationParameters'
  local storage authinfo speaks
  storage=$(said "$1" AccountingStorageType) authinfo=$(said "$1" AuthInfo) speaks=$(said "$1" CommunicationParameters)
  # What slurmdbd knows is not known here; the slurmctld that runs judges these at its reconfigure.
  [ "$storage" != accounting_storage/slurmdbd ] ||
    dropped+='|AccountingStorage[A-Za-z]*|TRESBillingWeights|PriorityWeightTRES|QOS|AllowQos|DenyQos'
  sed "s|$ETC/|$trial/etc/|g" "$1" | without "$dropped" | at_nobody
  printf '\n%s\n' "SlurmctldHost=$(host)(localhost)" "SlurmctldPort=$2" "StateSaveLocation=$trial/state" \
    "SlurmctldPidFile=$trial/pid" "AuthInfo=${{authinfo:+$authinfo,}}disable_sack" "MailProg=/bin/true" \
    "CommunicationParameters=${{speaks:+$speaks,}}NoInAddrAny,NoCtldInAddrAny"
}}
# at_nobody: nodes of slurm.conf itself are looked for where nobody listens.
at_nobody() {{
  local line
  while IFS= read -r line || [ -n "$line" ]; do
    case ${{line,,}} in
      nodename=default*) printf '%s\n' "$line" ;;
      nodename=*) printf "%s $NOBODY\n" "$(without 'NodeAddr|NodeHostname|BcastAddr|Port' <<< "$line")" ;;
      *) printf '%s\n' "$line" ;;
    esac
  done
}}

# least FILE: a file with which slurmctld starts wherever one does.
least() {{ printf '%s\n' ClusterName=trial SlurmUser="$(said "$1" SlurmUser)" AuthType=auth/slurm CredType=cred/slurm; }}

refuse() {{
  note refused "$wanted"
  again=$(($(now) + {AGAIN_S}))
  tell refused "$wanted" "$1"
}}

# note what is wanted now
read_wanted() {{
  [ "$looked" != "$(readlink "$WANTED/..data")" ] || return 0
  take "$WANTED" "$RUN/wanted"
  looked=$brought wanted=$(digest "$RUN/wanted") written=$(cat "$RUN/wanted/{WRITE_FILE}" 2> /dev/null)
  note refused ""
  [ "$(noted served)" != "$wanted" ] || [ "$(noted put)" != "$wanted" ] || tell taken "$wanted"
}}

# Files that were put are in force once slurmctld serves.
wait_for_slurmctld() {{
  local asked
  [ "$(noted served)" != "$wanted" ] || return 0
  asked=$(now)
  if serves; then
    note served "$wanted"
    tell taken "$wanted"
  elif [ "$asked" -ge $(($(noted put-at) + {STARTS_S})) ] && has_proven; then
    put "$RUN/proven"
    refuse "slurmctld did not serve with it within {STARTS_S} s: see its log"
  fi
}}

change() {{
  local found code
  # Whoever was killed while it tried these files does not try them again.
  if [ "$(noted tried)" != "$wanted" ]; then
    note tried "$wanted"
    try "$RUN/wanted"
    found=$?
    note tried ""
    if [ "$found" = 1 ]; then
      refuse "$words"
      if [ -z "$(noted put)" ] && has_proven; then put "$RUN/proven"; fi
      return
    fi
  fi
  if [ -z "$(noted put)" ]; then put "$RUN/wanted"; return; fi
  # A side-car that was killed while it put files left a mixture; the copy from before that is the one to go back to.
  if [ -z "$(noted putting)" ] || [ ! -d "$RUN/before" ]; then
    rm -rf "$RUN/before" && mkdir "$RUN/before"
    while IFS= read -r each; do cp -- "$ETC/$each" "$RUN/before/$each"; done < "$RUN/names"
  fi
  put "$RUN/wanted"
  words=$(timeout {ANSWERS_S} scontrol reconfigure 2>&1)
  code=$?
  if [ "$code" = 0 ]; then
    note served "$wanted"
    tell taken "$wanted"
  elif ! is_lost "$code" "$words"; then
    put "$RUN/before"
    refuse "at its reconfigure: $(printf '%s' "$words" | tr -c '[:print:]' ' ' | cut -c 1-1000)"
  fi
}}

# sift FIRST LAST: tell which of these lines of nodes slurmctld refuses.
sift() {{
  local middle=$((($1 + $2) / 2))
  [ "$unfit" -lt {MOST_UNFIT} ] || return 0
  sed -n "$1,$2p" "$RUN/nodes" > "$RUN/some"
  start "$ETC" "$RUN/some"
  [ $? = 1 ] || return 0
  if [ "$1" = "$2" ]; then
    unfit=$((unfit + 1))
    tell unfit "$(tr -d '\n' < "$RUN/some" | sha256sum | cut -c 1-64)" "$(cut -c 1-500 <<< "$words")"
  else
    sift "$1" "$middle"
    sift $((middle + 1)) "$2"
  fi
}}

# judge: would slurmctld take the nodes that workers are to register? It reads what they say of themselves as it reads its file. One that it
# refuses costs no other one, and not the configuration.
judge() {{
  [ "$judged" != "$wanted $written" ] && [ -n "$(noted put)" ] || return 0
  [ "$(noted served)" = "$wanted" ] || [ "$(noted refused)" = "$wanted" ] || return 0
  judged="$wanted $written"
  sed -n 's/^#NodeName=/NodeName=/p' "$RUN/wanted/slurm.conf" | head -n {MOST_NODES} > "$RUN/nodes"
  unfit=0
  if [ -s "$RUN/nodes" ]; then
    start "$ETC" "$RUN/nodes"
    # What is refused without them, too, is not about them.
    if [ $? = 1 ] && start "$ETC"; then sift 1 "$(wc -l < "$RUN/nodes")"; fi
  fi
  rm -rf "$trial"
  tell judged "$wanted"
}}

again=0 words= looked=- wanted= judged=
while :; do
  read_wanted
  if [ "$(noted put)" = "$wanted" ]; then
    wait_for_slurmctld
  elif [ "$(noted refused)" != "$wanted" ] || [ "$(now)" -ge "$again" ]; then
    change
  fi
  judge
  sleep 1 & wait $!
done
"""
"""Runs in the pod, because only the pod sees when its kubelet has delivered new files, and only its image has the slurmctld that has to
accept them. Its records survive a restart of this container, but not of the pod."""

SLURMDBD_SCRIPT: Final = rf"""{_COMMON}
DAEMON=slurmdbd FILE=slurmdbd.conf MODE=600
# It gets that far once it has read its file and has loaded all plugins.
SERVES="The database must be up when starting|slurmdbd version .* started"
trap 'exit 1' TERM
umask 077  # it refuses a file that others may read

# neutral FILE PORT: a slurmdbd.conf with which slurmdbd neither is reached nor reaches a database, and runs nobody's program.
neutral() {{
  local dropped='DbdHost|DbdAddr|DbdPort|DbdBackupHost|LogFile|PidFile|AuthInfo|CommunicationParameters'
  dropped+='|StorageHost|StorageBackupHost|StoragePort|StorageUser|StoragePass|StoragePassScript'
  local authinfo speaks
  authinfo=$(said "$1" AuthInfo) speaks=$(said "$1" CommunicationParameters)
  sed "s|$ETC/|$trial/etc/|g" "$1" | without "$dropped"
  printf '\n%s\n' "DbdHost=$(host)" DbdAddr=localhost "DbdPort=$2" "PidFile=$trial/pid" \
    StorageHost=127.0.0.1 StoragePort=1 StorageUser=nobody \
    "AuthInfo=${{authinfo:+$authinfo,}}disable_sack" "CommunicationParameters=${{speaks:+$speaks,}}NoInAddrAny"
}}

# least FILE: a file with which slurmdbd starts wherever one does.
least() {{ printf '%s\n' SlurmUser="$(said "$1" SlurmUser)" AuthType=auth/slurm StorageType=accounting_storage/mysql; }}

# A kubelet may still have the files of the pod before this one.
deadline=$(($(now) + {BROUGHT_S})) wanted= words=
while take "$WANTED" "$RUN/wanted"; wanted=$(digest "$RUN/wanted"); [ "$wanted" != "$DIGEST" ] && [ "$(now)" -lt "$deadline" ]; do
  sleep 1 & wait $!
done
try "$RUN/wanted"
if [ "$?" != 1 ]; then
  put "$RUN/wanted"
  rm -rf "$RUN/wanted"
  tell taken "$wanted" | tee "$LAST_WORDS"
  exit 0
fi
tell refused "$wanted" "$words" | tee "$LAST_WORDS"
has_proven && put "$RUN/proven"
starts=$?
rm -rf "$RUN/wanted" "$RUN/proven"
exit "$starts"
"""
"""Tries the file before slurmdbd's own container starts, because slurmdbd reads it only at startup. `DIGEST` is the digest of the file to
try."""
