{{/* Head of a policy: (dict "root" $ "policy" "keys") */}}
{{- define "slurm-bridge.policyMetadata" -}}
name: {{ include "slurm-bridge.name" .root }}-{{ .policy }}
labels: {{- include "slurm-bridge.labels" (dict "root" .root "component" "policies") | nindent 2 }}
{{- end }}

{{/* A policy's binding: (dict "root" $ "policy" "keys" "actions" (list "Deny") "namespaceSelector" yaml-or-nothing "objectSelector" yaml-or-nothing "resourceRules" yaml-or-nothing "paramRef" yaml-or-nothing); "kind" "Mutating": without actions; "binding": its name, if there are several */}}
{{- define "slurm-bridge.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: {{ .kind | default "Validating" }}AdmissionPolicyBinding
metadata: {{- include "slurm-bridge.policyMetadata" (dict "root" .root "policy" (.binding | default .policy)) | nindent 2 }}
spec:
  policyName: {{ include "slurm-bridge.name" .root }}-{{ .policy }}
  {{- with .actions }}
  validationActions: {{ . | toJson }}
  {{- end }}
  {{- with .paramRef }}
  paramRef: {{- . | nindent 4 }}
  {{- end }}
  {{- if or .namespaceSelector .objectSelector .resourceRules }}
  matchResources:
    {{- with .resourceRules }}
    resourceRules: {{- . | nindent 4 }}
    {{- end }}
    {{- with .namespaceSelector }}
    namespaceSelector: {{- . | nindent 6 }}
    {{- end }}
    {{- with .objectSelector }}
    objectSelector: {{- . | nindent 6 }}
    {{- end }}
  {{- end }}
{{- end }}

{{/*
Condition and validations of a policy: (dict "name" "of-the-condition" "first" (list CEL) "validations" (list …) "accounts" (list …) "byUs" CEL "unless" (list CEL)).
The API server turns objects into CEL's form for a policy's conditions, once more for its validations and a third time for their
messages, and evaluates every condition, whatever the first says. So there is one, which only what is refused meets; hence
validations without variables. What holds for all that is refused and costs little may come first; who asks comes last, as nearly no
object fails a validation. `accounts` are validations of what our own accounts (`byUs`) write, which others' writes cost one comparison: _accounts.tpl.
*/}}
{{- define "slurm-bridge.refusing" -}}
{{- $faults := list }}
{{- range .validations }}{{ $faults = append $faults (printf "!(%s)" .expression) }}{{ end }}
{{- $byUs := list }}
{{- range .accounts }}{{ $byUs = append $byUs (printf "!(%s)" .expression) }}{{ end -}}
matchConditions:
- name: {{ .name }}
  expression: |-
    {{- if $byUs }}
    (
    {{- end }}
    {{- range .first }}
    ({{ . | nindent 4 | trim }}) &&
    {{- end }}
    ({{ join " ||\n" $faults | nindent 4 | trim }})
    {{- if $byUs }} ||
    ({{ .byUs }} &&
    ({{ join " ||\n" $byUs | nindent 4 | trim }})))
    {{- end }}
    {{- range .unless }} &&
    !({{ . | nindent 4 | trim }})
    {{- end }}
validations: {{- concat .validations (.accounts | default list) | toYaml | nindent 0 }}
{{- end }}
