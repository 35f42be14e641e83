{{/* Names that several templates share. The keys are those of slurmruntime/values/names.py; tests/chart compares them. */}}

{{- define "slurm-bridge.gate" -}}slurm-bridge.dev/placement{{- end }}
{{- define "slurm-bridge.finalizer" -}}slurm-bridge.dev/placeholder{{- end }}
{{- define "slurm-bridge.bridgedLabel" -}}slurm-bridge.dev/bridged{{- end }}
{{/* The name that pods have which the extender binds itself: no kube-scheduler serves it. */}}
{{- define "slurm-bridge.binderName" -}}{{ .Values.config.scheduler_name }}-binder{{- end }}
{{- define "slurm-bridge.extenderBinds" -}}{{ eq (dig "placement" "binder" "kube-scheduler" .Values.config) "extender" | ternary "true" "" }}{{- end }}
{{- define "slurm-bridge.jobIdLabel" -}}scheduler.slinky.slurm.net/slurm-jobid{{- end }}
{{- define "slurm-bridge.nodeAnnotation" -}}slinky.slurm.net/slurm-node{{- end }}
{{/* Annotations that only we write, and only after CREATE; when-lost is an operator's word. */}}
{{- define "slurm-bridge.laterAnnotations" -}}
{{- list
  (include "slurm-bridge.nodeAnnotation" .)
  "slurm-bridge.dev/slurm-sluid"
  "slurm-bridge.dev/slurm-grant"
  "slurm-bridge.dev/workload"
  "slurm-bridge.dev/rank"
  "slurm-bridge.dev/world-size"
  "slurm-bridge.dev/nodelist"
  "slurm-bridge.dev/cpus"
  "slurm-bridge.dev/when-lost"
  | toJson }}
{{- end }}
{{/* Annotations that keep autoscalers from ending a pod, written with the pin. JSON. */}}
{{- define "slurm-bridge.autoscalers" -}}
{{- list "karpenter.sh/do-not-disrupt" "cluster-autoscaler.kubernetes.io/safe-to-evict" | toJson }}
{{- end }}
{{- define "slurm-bridge.requesterAnnotation" -}}slurm-bridge.dev/requester{{- end }}
{{- define "slurm-bridge.rulesAnnotation" -}}slurm-bridge.dev/policy-rules{{- end }}
{{- define "slurm-bridge.ownerAnnotation" -}}slurm-bridge.dev/owner{{- end }}
{{- define "slurm-bridge.managedNodeTaint" -}}slinky.slurm.net/managed-node{{- end }}

{{/*
Beginnings of the labels and annotations that say what a pod asks of Slurm, for whom, and with which others: all of ours, and
those by which the field's workload controllers mark a group. JSON.
*/}}
{{- define "slurm-bridge.frozenPrefixes" -}}
{{- list
  "slurm-bridge.dev/"
  "slurmjob.slinky.slurm.net/"
  "scheduler.slinky.slurm.net/"
  "slinky.slurm.net/"
  "scheduling.x-k8s.io/"
  "kueue.x-k8s.io/pod-group-"
  "jobset.sigs.k8s.io/jobset-"
  "jobset.sigs.k8s.io/replicatedjob-"
  "jobset.sigs.k8s.io/job-"
  "jobset.sigs.k8s.io/group-"
  "jobset.sigs.k8s.io/global-"
  "leaderworkerset.sigs.k8s.io/"
  | toJson }}
{{- end }}

{{/*
Annotations by which a controller asks for a topology of its group's own, and the labels by which its terms say so. The webhook
takes these terms: bridge/domain/workloads/kinds. JSON.
*/}}
{{- define "slurm-bridge.exclusiveTerms" -}}
{{- dict
  "alpha.jobset.sigs.k8s.io/exclusive-topology" (list "jobset.sigs.k8s.io/job-key" "jobset.sigs.k8s.io/priority")
  "leaderworkerset.sigs.k8s.io/exclusive-topology" (list "leaderworkerset.sigs.k8s.io/group-key")
  | toJson }}
{{- end }}

{{/* The release's name is the prefix of every object; cluster-wide ones too, so two releases need two names. */}}
{{- define "slurm-bridge.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* "slurm-bridge.labels" (dict "root" $ "component" "webhook") */}}
{{- define "slurm-bridge.labels" -}}
{{ include "slurm-bridge.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: slurm-bridge
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "slurm-bridge.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The user name of a component's service account: "slurm-bridge.user" (dict "root" $ "component" "extender") */}}
{{- define "slurm-bridge.user" -}}
system:serviceaccount:{{ .root.Release.Namespace }}:{{ include "slurm-bridge.name" .root }}-{{ .component }}
{{- end }}

{{/*
Who does the controllers' work: their own account and, where the extender's pods do it (workloads.together), the extender's. Their own
keeps its rights then: during an upgrade its last pods end in order, and after one back its first ones start with them. JSON.
*/}}
{{- define "slurm-bridge.controllersComponents" -}}
{{- list "controllers" | concat (ternary (list "extender") list .Values.workloads.together) | toJson }}
{{- end }}

{{/* The same as subjects of a binding. JSON. */}}
{{- define "slurm-bridge.controllersSubjects" -}}
{{- $subjects := list }}
{{- range $component := include "slurm-bridge.controllersComponents" . | fromJsonArray }}
{{- $subjects = append $subjects (dict "kind" "ServiceAccount" "name" (printf "%s-%s" (include "slurm-bridge.name" $) $component) "namespace" $.Release.Namespace) }}
{{- end }}
{{- $subjects | toJson }}
{{- end }}

{{/* The same as user names. JSON. */}}
{{- define "slurm-bridge.controllersUsers" -}}
{{- $users := list }}
{{- range $component := include "slurm-bridge.controllersComponents" . | fromJsonArray }}
{{- $users = append $users (include "slurm-bridge.user" (dict "root" $ "component" $component)) }}
{{- end }}
{{- $users | toJson }}
{{- end }}

{{- define "slurm-bridge.serviceHost" -}}
{{ include "slurm-bridge.name" .root }}-{{ .component }}.{{ .root.Release.Namespace }}.svc
{{- end }}

{{/* Name of a component's TLS Secret: webhook, extender (servers), scheduler (the extender's client). */}}
{{- define "slurm-bridge.tlsSecret" -}}
{{- if eq .root.Values.tls.mode "secret" }}{{ get .root.Values.tls.secrets .component }}
{{- else }}{{ include "slurm-bridge.name" .root }}-{{ .component }}-tls{{ end }}
{{- end }}

{{/* Namespaces that never match, as a JSON list; also a CEL list. */}}
{{- define "slurm-bridge.excludedNamespaces" -}}
{{ append .Values.excludedNamespaces .Release.Namespace | uniq | toJson }}
{{- end }}

{{/* Namespaces that policy `direct` does not look at, as a JSON list. */}}
{{- define "slurm-bridge.passedByDirect" -}}
{{ concat (include "slurm-bridge.excludedNamespaces" . | fromJsonArray) .Values.policies.direct.namespaces | uniq | toJson }}
{{- end }}

{{/* Elsewhere it sees every UPDATE of a pod, and denies what it refuses: "true" or nothing. */}}
{{- define "slurm-bridge.directDeniesUpdates" -}}
{{- if and .Values.config.controllers.taint_effect (has "Deny" .Values.policies.direct.actions) }}true{{ end }}
{{- end }}

{{/* Where the webhook is tested. */}}
{{- define "slurm-bridge.selfTestNamespace" -}}
{{ include "slurm-bridge.name" . }}-self-test
{{- end }}

{{/*
Cluster-wide objects of this name belong to a release in another namespace: an older one of ours, or SchedMD's slurm-bridge.
Helm would refuse them one by one, with messages that do not help.
*/}}
{{- define "slurm-bridge.onlyHere" -}}
{{- $name := printf "%s-controllers" (include "slurm-bridge.name" .) }}
{{- $there := lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" $name }}
{{- $owner := dig "metadata" "annotations" "meta.helm.sh/release-namespace" .Release.Namespace ($there | default dict) }}
{{- if ne $owner .Release.Namespace }}
{{- fail (printf "slurm-bridge is installed in namespace %s already (ClusterRole %s), and two cannot run beside each other. Upgrade it there (helm upgrade -n %s), or move it: docs/migration.md says how, for an older release of this chart and for SchedMD's slurm-bridge" $owner $name $owner) }}
{{- end }}
{{- end }}

{{/* Labels that make a namespace match the selector of bridged namespaces. */}}
{{- define "slurm-bridge.selectedLabels" -}}
{{- $labels := deepCopy .Values.namespaceSelector.matchLabels }}
{{- range .Values.namespaceSelector.matchExpressions }}
{{- if eq .operator "In" }}{{ $_ := set $labels .key (first .values) }}{{ end }}
{{- if eq .operator "Exists" }}{{ $_ := set $labels .key "true" }}{{ end }}
{{- end }}
{{- with $labels }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* The selector of bridged namespaces. */}}
{{- define "slurm-bridge.namespaceSelector" -}}
{{- $notExcluded := dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" (include "slurm-bridge.excludedNamespaces" . | fromJsonArray) }}
{{- dict
  "matchLabels" .Values.namespaceSelector.matchLabels
  "matchExpressions" (append .Values.namespaceSelector.matchExpressions $notExcluded)
  | toYaml }}
{{- end }}
