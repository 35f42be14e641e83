{{/*
Expressions of the Common Expression Language that admission policies and webhook configurations share. They run inside the
API server on pod writes of the whole cluster, so the deciding part comes first, and every optional field is asked for with
`?`: an evaluation error would refuse the pod of another user. https://kubernetes.io/docs/reference/using-api/cel/
*/}}

{{/* A list of names as a CEL list. */}}
{{- define "slurm-bridge.cel.list" -}}
{{ toJson . | replace "\"" "'" }}
{{- end }}

{{/* The requester may do all: a group that administrators enter on purpose. */}}
{{- define "slurm-bridge.cel.breakGlass" -}}
request.userInfo.?groups.orValue([]).exists(g, g in {{ include "slurm-bridge.cel.list" .Values.policies.breakGlassGroups }})
{{- end }}

{{/* What a refusal says to such a requester. */}}
{{- define "slurm-bridge.breakGlassHint" -}}
{{- with .Values.policies.breakGlassGroups }} (in an emergency act as group {{ first . }}){{ end }}
{{- end }}

{{/* Who creates pods that are not Slurm's to place, one by one: the administrator's list, and where SlurmJobs are served, the account that makes their companions. */}}
{{- define "slurm-bridge.podCreators" -}}
{{- $companions := dig "slurm_jobs" "enabled" false .Values.config | ternary (list (include "slurm-bridge.user" (dict "root" . "component" "companions"))) list }}
{{- include "slurm-bridge.cel.list" (concat .Values.policies.podCreators $companions) }}
{{- end }}

{{/* The requester is a kubelet. */}}
{{- define "slurm-bridge.cel.byKubelet" -}}
(request.userInfo.username.startsWith('system:node:') && 'system:nodes' in request.userInfo.?groups.orValue([]))
{{- end }}

{{/* Pods of this requester are not Slurm's to place: DaemonSet pods, a kubelet's mirror pods, whom the administrator lists. */}}
{{- define "slurm-bridge.cel.passesUsBy" -}}
request.userInfo.username in {{ include "slurm-bridge.podCreators" . }} ||
{{ include "slurm-bridge.cel.byKubelet" . }} ||
{{ include "slurm-bridge.cel.breakGlass" . }}
{{- end }}

{{/* The uid of the object's controlling owner; '' without one. */}}
{{- define "slurm-bridge.cel.controllerUid" -}}
object.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false)).map(o, o.uid).join('')
{{- end }}

{{/* Both names by which a pod asks for us: of kube-scheduler's profile, and of pods that the extender binds itself, even if it does so no more. */}}
{{- define "slurm-bridge.cel.schedulers" -}}
{{ include "slurm-bridge.cel.list" (list .Values.config.scheduler_name (include "slurm-bridge.binderName" .)) }}
{{- end }}

{{/*
The extender may bind the pod itself: kube-scheduler would have neither volumes nor a group to handle. The volumes are listed
and not the others, so that a kind that Kubernetes adds is kube-scheduler's. bridge/domain/admission/binder.py says the same, and the tests compare the two.
Resource claims are the extender's either way: it has written their devices before, and looks at them again before it binds.
*/}}
{{- define "slurm-bridge.cel.extenderMayBind" -}}
!object.spec.?schedulingGroup.hasValue() && !object.spec.?workloadRef.hasValue() &&
object.spec.?volumes.orValue([]).all(v, {{ range $n, $kind := list "configMap" "downwardAPI" "emptyDir" "hostPath" "projected" "secret" }}{{ if $n }} || {{ end }}has(v.{{ $kind }}){{ end }})
{{- end }}

{{/* The pod is ours: it asks for our scheduler or carries our finalizer. (dict "root" $ "pod" "object") */}}
{{- define "slurm-bridge.cel.isOurs" -}}
({{ .pod }}.spec.?schedulerName.orValue('') in {{ include "slurm-bridge.cel.schedulers" .root }} ||
{{ .pod }}.metadata.?finalizers.orValue([]).exists(f, f == '{{ include "slurm-bridge.finalizer" .root }}'))
{{- end }}

{{/* The pod carries our scheduling gate, our finalizer. (dict "root" $ "pod" "object") */}}
{{- define "slurm-bridge.cel.hasGate" -}}
{{ .pod }}.spec.?schedulingGates.orValue([]).exists(g, g.name == '{{ include "slurm-bridge.gate" .root }}')
{{- end }}
{{- define "slurm-bridge.cel.hasFinalizer" -}}
{{ .pod }}.metadata.?finalizers.orValue([]).exists(f, f == '{{ include "slurm-bridge.finalizer" .root }}')
{{- end }}

{{/* The pod tolerates the managed-node taint; without a key it tolerates every taint, without an effect every effect. */}}
{{- define "slurm-bridge.cel.toleratesTaint" -}}
{{ .pod }}.spec.?tolerations.orValue([]).exists(t,
t.?key.orValue('') in ['', '{{ include "slurm-bridge.managedNodeTaint" .root }}'] &&
t.?effect.orValue('') in ['', '{{ .root.Values.config.controllers.taint_effect }}'])
{{- end }}

{{/* The pod carries our toleration, or one that covers it. (dict "root" $ "pod" "object") */}}
{{- define "slurm-bridge.cel.hasToleration" -}}
{{ .pod }}.spec.?tolerations.orValue([]).exists(t,
t.?operator.orValue('') == 'Exists' && t.?effect.orValue('') == '' &&
t.?key.orValue('') in ['', '{{ include "slurm-bridge.managedNodeTaint" .root }}'])
{{- end }}

{{/* The pod does not tolerate that taint, or did before. Its own definition, as no policy's condition may have variables. (dict "old" pod "new" pod) */}}
{{- define "slurm-bridge.cel.keepsFromTaint" -}}
!{{ include "slurm-bridge.cel.toleratesTaint" .new }} ||
(oldObject != null && {{ include "slurm-bridge.cel.toleratesTaint" .old }})
{{- end }}

{{/* The namespace is bridged: `slurm-bridge.namespaceSelector` over variables.labels, since a selector cannot be negated. */}}
{{- define "slurm-bridge.cel.namespaceIsBridged" -}}
{{- $excluded := include "slurm-bridge.excludedNamespaces" . | fromJsonArray }}
{{- $terms := list (printf "!(request.namespace in %s)" (include "slurm-bridge.cel.list" $excluded)) }}
{{- range $key, $value := .Values.namespaceSelector.matchLabels }}
{{- $terms = append $terms (printf "variables.labels[?'%s'] == optional.of('%s')" $key $value) }}
{{- end }}
{{- range .Values.namespaceSelector.matchExpressions }}
{{- $term := printf "'%s' in variables.labels" .key }}
{{- if has .operator (list "In" "NotIn") }}
{{- $term = printf "variables.labels[?'%s'].orValue('') in %s" .key (include "slurm-bridge.cel.list" .values) }}
{{- end }}
{{- $terms = append $terms (printf "%s(%s)" (hasPrefix "Not" .operator | or (eq .operator "DoesNotExist") | ternary "!" "") $term) }}
{{- end }}
{{- join " &&\n" $terms }}
{{- end }}

{{/*
Slurm has refused what the pod asks for, and the pod says so: there is nothing of it in Slurm, and it may ask for something else.
Only who may write pods/status can say that; so that no kubelet can, it counts for pods that still have their gate.
*/}}
{{- define "slurm-bridge.cel.isRefused" -}}
{{ include "slurm-bridge.cel.hasGate" (dict "root" . "pod" "oldObject") }} && oldObject.?status.?conditions.orValue([]).exists(c,
c.type == 'slurm-bridge.dev/Allocated' && c.?reason.orValue('') == 'SubmitRefused')
{{- end }}

{{/* Keys of labels or annotations that differ and are frozen. (dict "root" $ "of" "labels") */}}
{{- define "slurm-bridge.cel.frozenAndChanged" -}}
{{- $old := printf "oldObject.metadata.?%s.orValue({})" .of }}
{{- $new := printf "object.metadata.?%s.orValue({})" .of -}}
({{ $old }}.map(k, k) + {{ $new }}.map(k, k).filter(k, !(k in {{ $old }}))).filter(k,
{{ $old }}[?k] != {{ $new }}[?k] &&
{{ include "slurm-bridge.frozenPrefixes" .root | fromJsonArray | include "slurm-bridge.cel.list" }}.exists(p, k.startsWith(p)) &&
!(k.startsWith('slurmjob.slinky.slurm.net/') && {{ include "slurm-bridge.cel.isRefused" .root }}))
{{- end }}

{{/* The requester is one of Kubernetes' own controllers, which adopt pods and collect owners. */}}
{{- define "slurm-bridge.cel.isKubeController" -}}
request.userInfo.username.startsWith('system:serviceaccount:kube-system:') ||
request.userInfo.username == 'system:kube-controller-manager'
{{- end }}
