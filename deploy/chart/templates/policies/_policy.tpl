{{/* Head of a policy: (dict "root" $ "policy" "keys") */}}
{{- define "slurm-bridge.policyMetadata" -}}
name: {{ include "slurm-bridge.name" .root }}-{{ .policy }}
labels: {{- include "slurm-bridge.labels" (dict "root" .root "component" "policies") | nindent 2 }}
{{- end }}

{{/* A policy's binding: (dict "root" $ "policy" "keys" "actions" (list "Deny") "namespaceSelector" yaml-or-nothing "objectSelector" yaml-or-nothing "paramRef" yaml-or-nothing); "kind" "Mutating": without actions; "binding": its name, if there are several */}}
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
  {{- if or .namespaceSelector .objectSelector }}
  matchResources:
    {{- with .namespaceSelector }}
    namespaceSelector: {{- . | nindent 6 }}
    {{- end }}
    {{- with .objectSelector }}
    objectSelector: {{- . | nindent 6 }}
    {{- end }}
  {{- end }}
{{- end }}
