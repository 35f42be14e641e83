{{/*
What the accounts of extender and controllers may write, even in the hands of a thief of their tokens. One list of conditions for both, so that it holds where one
process has the rights of both; each begins with who asks, so that others' writes stop there. Admission sees no reads, and no webhook configurations:
docs/security.md says what that leaves open.
*/}}

{{/* One of our accounts that write pods and nodes asks. */}}
{{- define "slurm-bridge.cel.byUs" -}}
request.userInfo.username in {{ include "slurm-bridge.cel.list" (list (include "slurm-bridge.user" (dict "root" . "component" "extender")) (include "slurm-bridge.user" (dict "root" . "component" "controllers"))) }}
{{- end }}

{{/* The same, or our kube-scheduler: its stock role may delete and bind any pod, and it preempts none, as Slurm decides that. */}}
{{- define "slurm-bridge.cel.byUsOrScheduler" -}}
{{- $users := list }}
{{- range $component := list "extender" "controllers" "scheduler" }}{{ $users = append $users (include "slurm-bridge.user" (dict "root" $ "component" $component)) }}{{ end -}}
request.userInfo.username in {{ include "slurm-bridge.cel.list" $users }}
{{- end }}

{{/*
The pod, as it was before the write, is ours to write: Slurm places it, or it serves a SlurmJob. Not by its finalizer: our accounts
could put that on any pod, through pods/status, and the labels they cannot.
*/}}
{{- define "slurm-bridge.accounts.wasOurs" -}}
(oldObject.spec.?schedulerName.orValue('') in {{ include "slurm-bridge.cel.schedulers" . }} ||
'{{ include "slurm-bridge.bridgedLabel" . }}' in oldObject.metadata.?labels.orValue({})
{{- if dig "slurm_jobs" "enabled" false .Values.config }} ||
'slurm-bridge.dev/companion' in oldObject.metadata.?labels.orValue({})
{{- end }})
{{- end }}

{{/*
Of this map only entries differ that may: (dict "of" "metadata.?labels" "may" "k in ['a']"). Not by a list of what differs: with very many
labels that would exceed the budget of an expression.
*/}}
{{- define "slurm-bridge.accounts.changesOnly" -}}
{{- $old := printf "oldObject.%s.orValue({})" .of }}
{{- $new := printf "object.%s.orValue({})" .of -}}
({{ $old }} == {{ $new }} ||
({{ $old }}.all(k, k in {{ $new }} || {{ .may }}) &&
{{ $new }}.all(k, {{ $old }}[?k] == optional.of({{ $new }}[k]) || {{ .may }})))
{{- end }}

{{/* These fields are as they were: (dict "in" "status" "fields" (list "podIP")) */}}
{{- define "slurm-bridge.accounts.kept" -}}
{{- $in := .in }}
{{- range $n, $field := .fields }}{{ if $n }} &&
{{ end }}object.{{ $in }}.?{{ $field }} == oldObject.{{ $in }}.?{{ $field }}{{ end }}
{{- end }}

{{/* Conditions of other types are as they were, in whatever order: (list "DisruptionTarget") */}}
{{- define "slurm-bridge.accounts.conditionsKept" -}}
{{- $types := include "slurm-bridge.cel.list" . }}
{{- $old := "oldObject.?status.?conditions.orValue([])" }}
{{- $new := "object.?status.?conditions.orValue([])" -}}
{{ $old }}.all(c, c.type in {{ $types }} || {{ $new }}.exists(d, d == c)) &&
{{ $new }}.all(c, c.type in {{ $types }} || {{ $old }}.exists(d, d == c))
{{- end }}

{{/* Validations for an UPDATE of pods. */}}
{{- define "slurm-bridge.accounts.pods" }}
{{- $notByUs := printf "!(%s) || oldObject == null" (include "slurm-bridge.cel.byUs" .) }}
{{- $labels := list (include "slurm-bridge.jobIdLabel" .) (include "slurm-bridge.bridgedLabel" .) }}
{{- $annotations := concat (include "slurm-bridge.laterAnnotations" . | fromJsonArray) (include "slurm-bridge.autoscalers" . | fromJsonArray) (list "slurm-bridge.dev/ended") }}
- expression: |-
    {{ $notByUs }} ||
    {{ include "slurm-bridge.accounts.wasOurs" . | nindent 4 | trim }}
  reason: Forbidden
  message: >-
    this account writes pods that Slurm places, and companions of SlurmJobs, and no others
- expression: |-
    {{ $notByUs }} ||
    ({{ include "slurm-bridge.accounts.kept" (dict "in" "spec" "fields" (list "containers" "initContainers" "tolerations" "nodeSelector" "terminationGracePeriodSeconds")) | nindent 4 | trim }} &&
    object.spec.?schedulingGates.orValue([]).filter(g, g.name != '{{ include "slurm-bridge.gate" . }}') ==
    oldObject.spec.?schedulingGates.orValue([]).filter(g, g.name != '{{ include "slurm-bridge.gate" . }}'))
  reason: Forbidden
  message: >-
    spec: of a pod, this account writes its own gate, the node's name in the affinity and the deadline, and never images, containers or tolerations
- expression: |-
    {{ $notByUs }} ||
    ({{ include "slurm-bridge.accounts.changesOnly" (dict "of" "metadata.?labels" "may" (printf "k in %s" (include "slurm-bridge.cel.list" $labels))) | nindent 4 | trim }} &&
    {{ include "slurm-bridge.accounts.changesOnly" (dict "of" "metadata.?annotations" "may" (printf "k in %s" (include "slurm-bridge.cel.list" $annotations))) | nindent 4 | trim }})
  reason: Forbidden
  message: >-
    metadata: of a pod's labels and annotations, this account writes those that say where Slurm has placed it, and no others
- expression: |-
    {{ $notByUs }} ||
    ({{ include "slurm-bridge.accounts.kept" (dict "in" "metadata" "fields" (list "ownerReferences")) | nindent 4 | trim }} &&
    object.metadata.?finalizers.orValue([]).filter(f, f != '{{ include "slurm-bridge.finalizer" . }}') ==
    oldObject.metadata.?finalizers.orValue([]).filter(f, f != '{{ include "slurm-bridge.finalizer" . }}'))
  reason: Forbidden
  message: >-
    metadata: this account removes its own finalizer, and changes neither another one nor an owner
{{- end }}

{{/* Validations for an UPDATE of pods/status. */}}
{{- define "slurm-bridge.accounts.podStatus" }}
{{- $notByUs := printf "!(%s) || request.?subResource.orValue('') != 'status'" (include "slurm-bridge.cel.byUs" .) }}
{{- $status := list "podIP" "podIPs" "hostIP" "hostIPs" "startTime" "containerStatuses" "initContainerStatuses" "ephemeralContainerStatuses" "nominatedNodeName" "qosClass" "resources" "allocatedResources" "extendedResourceClaimStatus" }}
{{- /* The extender names the claims that it makes for a pod. */}}
{{- if not (dig "controllers" "device_profiles" dict .Values.config) }}{{ $status = append $status "resourceClaimStatuses" }}{{ end }}
- expression: |-
    {{ $notByUs }} ||
    {{ include "slurm-bridge.accounts.wasOurs" . | nindent 4 | trim }}
  reason: Forbidden
  message: >-
    status: this account writes the status of pods that Slurm places, and of no others
- expression: |-
    {{ $notByUs }} ||
    ({{ include "slurm-bridge.accounts.kept" (dict "in" "metadata" "fields" (list "labels" "annotations" "finalizers" "ownerReferences")) | nindent 4 | trim }} &&
    {{ include "slurm-bridge.accounts.kept" (dict "in" "status" "fields" $status) | nindent 4 | trim }} &&
    {{ include "slurm-bridge.accounts.conditionsKept" (list "slurm-bridge.dev/Allocated" "DisruptionTarget" "PodScheduled") | nindent 4 | trim }} &&
    (object.status.?phase == oldObject.status.?phase || (object.status.?phase.orValue('') == 'Failed' && !has(oldObject.spec.nodeName))))
  reason: Forbidden
  message: >-
    status: of a pod's status, this account writes its own condition, PodScheduled and DisruptionTarget, and the end of a pod that never
    got a node; never addresses or what containers do
{{- end }}
